"""Which argument a call stumbled over: for errors of Python and numpy that came from inside a function.

Functions do not check every argument before they use it: a check costs time in each call, and one that is forgotten
shows up as an error about an attribute or an index. Where such an error comes out of a public function, the arguments
are looked at here, and the one that is of the wrong kind is named. If all of them are right the error is let through.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from common.allocation import allocation_error, too_large
from common.arguments import shown
from common.dim import Dim
from common.errors import AllocationError, ArgumentError, TwingradError
from common.tensor.base import TensorBase

#: What may come out of a function because of an argument of the wrong kind.
STUMBLES = (
    AttributeError, IndexError, KeyError, MemoryError, OverflowError, TypeError, ValueError, ZeroDivisionError,
)  # fmt: skip

_INTS = frozenset(
    ["axis0", "axis1", "chunks", "destination", "diagonal", "dim", "dim0", "dim1", "dim2", "dims", "end_dim", "index",
     "k", "length", "m", "n", "normalized_shape", "num_classes", "offset", "output_size", "shape", "shifts", "size",
     "sizes", "source", "start_dim", "steps"]
)  # fmt: skip
_NUMBER = (bool, int, float, Dim)
_NUMBERS = frozenset(["alpha", "beta", "correction", "end", "eps", "fill_value", "p", "start", "step", "value"])


class Place(NamedTuple):
    """What is known of a public function: its name, and which of its parameters are operands.

    Attributes
    ----------
    operands, sequences : names of parameters that are tensors, and sequences of tensors.
    optional : names of those with a default.
    numbers : names of those whose default is a number.
    """

    name: str
    operands: tuple[str, ...]
    sequences: tuple[str, ...]
    optional: tuple[str, ...]
    numbers: tuple[str, ...]


def stumbled(place: Place, arguments: dict[str, Any], error: BaseException) -> BaseException:
    """The error to raise in place of `error`: itself, or one that names the argument that is to blame."""
    error = (isinstance(error, AllocationError) and error.__cause__) or error  # an op's becomes the function's
    if too_large(error):
        return allocation_error(place.name, error)
    if isinstance(error, TwingradError):
        return error
    found = next(_wrong(place, arguments, error), None)
    if found is None:
        return error
    refusal = ArgumentError(f"{place.name}(): {found}")
    refusal.__cause__ = error
    return refusal


def _wrong(place: Place, arguments: dict[str, Any], error: BaseException) -> Iterator[str]:
    """What is wrong with the arguments, the most certain first."""
    tensors = {key: arguments[key] for key in place.operands}
    numbers = {key: x for key, x in tensors.items() if isinstance(x, _NUMBER)}
    for key, x in tensors.items():
        if not _is_tensor(x) and key not in numbers and x is not None:
            yield f"argument '{key}' must be Tensor, not {type(x).__name__} ({shown(x)})"
    for key in place.sequences:
        xs = arguments[key]
        if not isinstance(xs, (tuple, list)):
            yield f"argument '{key}' must be tuple of Tensors, not {type(xs).__name__}"
            continue
        for i, x in enumerate(xs):
            if not _is_tensor(x):
                yield f"expected Tensor as element {i} in argument '{key}', but got {type(x).__name__} ({shown(x)})"
    for key, x in arguments.items():
        if key in tensors or key in place.sequences or (x is None and key in place.optional):
            continue
        if key in _INTS and not _ints(x):
            yield f"argument '{key}' must be int or tuple of ints, not {type(x).__name__} ({shown(x)})"
        elif (key in _NUMBERS or key in place.numbers) and not (_is_tensor(x) or isinstance(x, _NUMBER)):
            yield f"argument '{key}' must be a number, not {type(x).__name__} ({shown(x)})"
        elif isinstance(error, (OverflowError, ValueError)) and isinstance(x, int) and not -(2**63) <= x < 2**63:
            yield f"argument '{key}' does not fit into 64 bits: {x}"
    for key, x in tensors.items():
        if key in numbers or (x is None and key not in place.optional):
            yield f"argument '{key}' must be Tensor, not {type(x).__name__} ({shown(x)})"


def _is_tensor(x: Any) -> bool:
    return isinstance(x, (TensorBase, np.ndarray))


def _ints(x: Any) -> bool:
    if isinstance(x, (tuple, list)):
        return all(map(_ints, x))
    if isinstance(x, Dim):
        return True
    if isinstance(x, (TensorBase, np.ndarray)):
        return x.dtype.kind in "iu" and x.ndim == 0
    return hasattr(x, "__index__") and not isinstance(x, (bool, np.bool_)) and -(2**63) <= x.__index__() < 2**63
