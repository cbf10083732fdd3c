"""The public functions as an engine offers them: arrays in, tensors out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from common.api import out
from common.methods import engine_functions
from common.tensor.base import Tensor, wrap
from common.tensor.create import operand, operands

#: Makes the body of a function of operands, sequences of operands, and the call inside it, see
#: `common.methods.engine_functions.bind`.
Template = Callable[[list[str], list[str], str], list[str]]


def function_body(tensors: list[str], sequences: list[str], call: str) -> list[str]:
    """Convert what is no tensor, and call."""
    lines = []
    for x in tensors:
        others = tensors[1:] if x is tensors[0] else ["None"]  # None: only the first operand is made of a number
        lines.append(f"if {x}.__class__ is not Tensor: {x} = _operand({', '.join([x, *others])})")
    lines += [f"{x} = _operands({x})" for x in sequences]
    return [*lines, f"return {call}"]


def _creation_body(tensors: list[str], sequences: list[str], call: str) -> list[str]:
    return [f"y = {call}", "return wrap(y) if y.__class__ is ndarray else y"]


def bind_function(
    name: str, function: Any, template: Template, home: str, written: Callable[..., Any] | None = None, **scope: Any
) -> Callable[..., Any]:
    """A function of tensors.

    Parameters
    ----------
    written : makes calls with ``out=``, in place of `common.api.out.written`.
    scope : what its body uses besides.
    """
    scope = {"Tensor": Tensor, "_operand": operand, "_operands": operands, **scope}
    write_out = (written or out.written) if name in out.TAKEN else None
    in_place = name in engine_functions.INPLACE
    return engine_functions.bind(name, function, template, home, write_out=write_out, in_place=in_place, **scope)


def bind_creation(
    names: dict[str, Any], extend: Callable[[Template, Any], tuple[Template, dict[str, Any]]] | None = None
) -> dict[str, Callable[..., Any]]:
    """Functions that make tensors of sizes or data.

    Parameters
    ----------
    extend : gives a function's template, and names that it uses, in place of a general one.
    """
    bound = {}
    for name, f in names.items():
        template, scope = (_creation_body, {}) if extend is None else extend(_creation_body, f)
        scope |= {"wrap": wrap, "ndarray": np.ndarray, "takes_operands": False}
        write_out = out.written if name in out.CREATION else None
        bound[name] = engine_functions.bind(name, f, template, __file__, write_out=write_out, **scope)
    return bound
