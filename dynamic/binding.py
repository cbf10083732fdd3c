"""The public functions as this engine offers them: arrays in, tensors out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import dynamic.writes  # noqa: F401  gives tensors their way of writing
from common import binding, out
from common.create import operand, operands
from common.tensor.base import Tensor, wrap
from dynamic import joins, views
from dynamic.reductions import SHORT


def _function_body(tensors: list[str], sequences: list[str], call: str) -> list[str]:
    lines = []
    for x in tensors:
        others = tensors[1:] if x is tensors[0] else ["None"]  # None: only the first operand is made of a number
        lines.append(f"if {x}.__class__ is not Tensor: {x} = operand({', '.join([x, *others])})")
    lines += [f"{x} = operands({x})" for x in sequences]
    return [*lines, f"return {call}"]


def _creation_body(tensors: list[str], sequences: list[str], call: str) -> list[str]:
    return [f"y = {call}", "return wrap(y) if y.__class__ is ndarray else y"]


def bind(names: dict[str, Any]) -> dict[str, Callable[..., Any]]:
    """Functions of tensors; those with a short path of their own take it at once."""
    scope: dict[str, Any] = {"Tensor": Tensor, "operand": operand, "operands": operands}
    bound = {}
    short: Callable[..., Any] | None
    for name, function in names.items():
        if name in joins.SHORT:
            template, short = _joining_body, joins.SHORT[name]
        else:
            short = views.METHODS.get(name) or SHORT.get(name)
            template = _function_body if short is None else _short_body
        write_out = out.write if name in out.NAMES else None
        bound[name] = binding.bind(name, function, template, __file__, write_out=write_out, short=short, **scope)
    return bound


def _short_body(tensors: list[str], sequences: list[str], call: str) -> list[str]:
    passed = call.removeprefix("_function(").removesuffix(")").split(", ")
    # keywords are not passed: what the short path has not is left at its default
    left = [x.partition("=")[0] for x in passed if "=" in x]
    taken = ", ".join(x for x in passed if "=" not in x)
    exact = " and ".join([*(f"{x}.__class__ is Tensor" for x in tensors), *(f"{x} is _{x}" for x in left)])
    return [f"if {exact}: return short({taken})", *_function_body(tensors, sequences, call)]


def _joining_body(tensors: list[str], sequences: list[str], call: str) -> list[str]:
    lines = _function_body(tensors, sequences, call)
    return [f"if axis is _axis and (y := short({sequences[0]}, dim)) is not None: return y", *lines]


def bind_creation(names: dict[str, Any]) -> dict[str, Callable[..., Any]]:
    """Functions that make tensors of sizes or data."""
    scope: dict[str, Any] = {"wrap": wrap, "ndarray": np.ndarray, "takes_operands": False}
    return {name: binding.bind(name, f, _creation_body, __file__, **scope) for name, f in names.items()}
