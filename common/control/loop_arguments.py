"""Arguments of control flow, and calls of its functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from common.control.body import leaf, tensor_of
from common.control.mismatches import carries
from common.control.shape_trace import Abstract, AbstractTrace
from common.control.structures import Said, TreeSpec, place_of, tensors
from common.core import mode
from common.core.dtypes import bool_, int64, promote
from common.core.errors import ArgumentError, DTypeError, GradientError, ShapeError
from common.core.int_arguments import shown
from common.core.op import REGISTRY
from common.core.sizes import Dim
from common.core.tree import flatten, unflatten
from common.ops.create.creation import full_, made
from common.random.draw_counts import uncounted
from common.tensor.base import TensorBase, spec_of

Function = Callable[..., Any]

_SCALARS = (bool, int, float, np.ndarray, np.generic, Dim, TensorBase)


#: The kind of scalar that chooses a branch, see `scalar`.
INTEGER = "an integer"


def require_functions(name: str, **functions: Any) -> None:
    """Refuse what cannot be called.

    Raises
    ------
    ArgumentError : names the parameter.
    """
    for role, function in functions.items():
        if not callable(function):
            raise ArgumentError(
                f"{name}: {role} must be callable, a function, not {function!r} ({type(function).__name__})"
            )


def call(name: str, function: Function, *args: Any) -> Any:
    """Call a function on what its region is given."""
    try:
        return function(*args)
    except (ValueError, GradientError) as error:
        written = error.written if isinstance(error, GradientError) else None
        if "read-only" not in str(error) and not any(written is x for x in flatten(args)[0]):
            raise
        raise ArgumentError(
            f"{name}: {place_of(function)} writes to its argument in place; write to a clone() and return that"
        ) from error


def initial(init: Any, what: str, run: Function) -> tuple[list[TensorBase], Any]:
    """The initial values of a loop; numbers take the dtype that the function makes of them.

    Parameters
    ----------
    run : one iteration, of the tree; it is traced for its shapes if there are numbers.
    """
    given, structure = tensors(init, what)
    raw, _ = flatten(init)
    numbers = [i for i, x in enumerate(raw) if type(x) in (bool, int, float)]
    if numbers:
        with mode.no_grad(), mode.activate_trace(AbstractTrace(what)), uncounted():
            result, returned = flatten(run(unflatten(structure, [leaf(Abstract(spec_of(x)), False) for x in given])))
        for i in numbers if returned == structure else ():
            if isinstance(result[i], TensorBase) and promote(given[i].dtype, result[i].dtype) != given[i].dtype:
                given[i] = tensor_of(made(full_, shape=(), value=raw[i], dtype=result[i].dtype))
    return given, structure


def carried_on(name: str, function: Function, result: Any, form: TreeSpec, position: int = 0) -> list[TensorBase]:
    """The leaves of what a loop's function returns to be carried on; they must be like those of `form`.

    Parameters
    ----------
    position : of the function's parameter that takes what is carried.
    """
    leaves, structure = flatten(result)
    if form.fits(structure, leaves):
        return leaves
    leaves, structure = tensors(result, Said(f"{name}: what {{}} carries on", function), form)
    if not form.fits(structure, leaves):
        sides = carries(name, function, position, Said("what {} carries on", function))
        sides.require_equal(form, TreeSpec(structure, leaves))
    return leaves


def scalar(x: Any, what: str | Said, kind: str = "either boolean or number") -> TensorBase:
    """A 0-d tensor.

    Parameters
    ----------
    kind : what is expected, for the message.

    Raises
    ------
    ArgumentError : `x` is None, a tuple, a list or anything else that is no single number, array or tensor.
    ShapeError : it has dimensions.
    """
    if not isinstance(x, _SCALARS) and (isinstance(x, (str, bytes)) or not hasattr(x, "__array__")):
        text = x if isinstance(x, str) else "None" if x is None else shown(x)
        if callable(x) or (kind == INTEGER and isinstance(x, str)):
            raise ArgumentError(f"{what} type must be {kind}, got {text}. It must be a scalar")
        given = text if x is None else f"{text} of type {type(x)}"
        raise ArgumentError(f"{what} must be a scalar, got {given}; a bool, a number or a 0-d tensor is expected")
    (answer,), _ = tensors((x,), what)
    if len(answer.shape):
        raise ShapeError(f"{what} must be a scalar, 0-d, not of shape {tuple(answer.shape)}")
    return answer


def index_of(x: Any, what: str) -> TensorBase:
    """A 0-d int64 tensor, or the given floating point number."""
    answer = scalar(x, f"fori_loop: {what}")
    if answer.dtype == bool_:
        raise DTypeError(f"fori_loop: {what} must be a number, not {answer.dtype}")
    given = answer.payload if isinstance(x, TensorBase) else x
    known: Any = given if answer.dtype.kind == "f" and isinstance(given, (float, np.floating, np.ndarray)) else 0
    if not abs(known) <= 2**53:
        raise ArgumentError(
            f"fori_loop: {what} must be a number up to 2^53, from which on i + 1 is i, not {float(known)}"
        )
    exact = answer.dtype == int64 or answer.dtype.kind == "f"
    return answer if exact else REGISTRY["to"](answer, dtype=int64, x_dtype=answer.dtype)
