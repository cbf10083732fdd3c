"""The public functions as this engine offers them: functions with a short path take it at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import dynamic.eager.writes  # noqa: F401  gives tensors their way of writing
from common.api import offered
from common.api.offered import Template, bind_function, function_body
from common.methods import named
from common.tensor import boundary
from dynamic.eager import short_reductions, tensor, views, writing_kernels
from dynamic.eager.remembered import applied, applying, remembering, remembering_results

#: The functions with a short path.
_SHORT = {**short_reductions.SHORT, **views.METHODS, **views.FUNCTIONS}

named.extend_with(remembering)


def bind(names: dict[str, Any]) -> dict[str, Callable[..., Any]]:
    """Functions of tensors."""
    bound = {}
    short: Callable[..., Any] | None
    template: Template
    for name, function in names.items():
        scope: dict[str, Any] = {}
        if (short := _SHORT.get(name)) is not None:
            template = _short_body
        elif name in tensor.ONE_OP:
            general, scope = remembering(function_body, function)
            template, short = applying(general), None
            scope |= applied(*tensor.ONE_OP[name])
        else:
            template, scope = remembering(function_body, function)
        bound[name] = bind_function(name, function, template, __file__, writing_kernels.write_out, short=short, **scope)
    return bound


def bind_creation(names: dict[str, Any]) -> dict[str, Callable[..., Any]]:
    """Functions that make tensors of sizes or data; those of sizes and numbers alone remember."""

    def extend(general: Template, function: Any) -> tuple[Template, dict[str, Any]]:
        of_sizes = function.__module__.startswith("common.ops.")
        return remembering_results(general, function) if of_sizes else (general, {})

    return offered.bind_creation(names, extend)


def bind_transforms(names: Mapping[str, Any]) -> dict[str, Any]:
    """Transforms of functions, as this engine has them."""
    from dynamic.eager.transforms import TRANSFORMS

    return {name: boundary.published(TRANSFORMS[name]) for name in names}


def _short_body(tensors: list[str], sequences: list[str], call: str) -> list[str]:
    passed = call.removeprefix("_function(").removesuffix(")").split(", ")
    # keywords are not passed: what the short path has not is left at its default
    left = [x.partition("=")[0] for x in passed if "=" in x]
    taken = ", ".join(x for x in passed if "=" not in x)
    exact = " and ".join([*(f"{x}.__class__ is Tensor" for x in tensors), *(f"{x} is _{x}" for x in left)])
    return [f"if {exact}: return short({taken})", *function_body(tensors, sequences, call)]
