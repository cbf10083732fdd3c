"""Values of a model that are known before it runs: constants and arithmetic of sizes, as numpy arrays.

An array of sizes of a trace has dtype object, its elements are ints and Dims. Floats are computed here only by
operations that round once, so that they have the bits that an engine would give them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from common.core import mode
from common.core.errors import AllocationError, ArgumentError, TraceError, TwingradError
from common.core.sizes import Dim
from common.ops import functional as F
from common.ops.create import creation
from common.tensor.create import lift

MOST = 4096
"""Elements of arrays that are computed here; larger ones are tensors."""


def _as_tensors(make: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **kwargs: lift(make(*args, **kwargs))


full, arange = _as_tensors(creation.full), _as_tensors(creation.arange)
ones, eye = _as_tensors(creation.ones), _as_tensors(creation.eye)


def as_sizes(values: Sequence[Any]) -> np.ndarray:
    """Sizes as an array: int64, or of objects."""
    if all(not isinstance(n, Dim) for n in values):
        return np.array([int(n) for n in values], np.int64)
    made = np.empty(len(values), object)
    made[:] = values
    return made


def settled(x: np.ndarray) -> np.ndarray:
    """An array of objects as int64 if there is no Dim in it."""
    if x.dtype != object or any(isinstance(n, Dim) for n in x.flat):
        return x
    return np.array([int(n) for n in x.flat], np.int64).reshape(x.shape)


def kept(x: Any) -> Any:
    """A result as runs keep it: numbers and sizes are arrays."""
    if isinstance(x, Dim):
        made = np.empty((), object)
        made[()] = x
        return made
    if isinstance(x, (int, float, np.generic)):
        return np.asarray(x)
    return settled(x) if isinstance(x, np.ndarray) else x


def known(x: Any, what: str) -> np.ndarray:
    """Values that Python has to know: of a constant, of sizes, or of a tensor outside a trace.

    Raises
    ------
    TraceError : they depend on elements of a traced tensor.
    """
    if isinstance(x, np.ndarray):
        return x
    if mode.current_trace() is None:
        try:
            return np.asarray(x.detach().numpy())
        except TwingradError:
            pass
    raise TraceError(f"{what} depends on elements of tensors, so sizes would: run the model uncompiled")


def sizes(x: Any, what: str) -> list[Any]:
    """`known` as a list of ints and Dims."""
    found = known(x, what)
    if found.dtype.kind not in "iuO":
        raise ArgumentError(f"{what} is of dtype {found.dtype}, not int64")
    return [n if isinstance(n, Dim) else int(n) for n in found.reshape(-1)]


def number(x: Any, what: str) -> Any:
    """`known` as one number."""
    found = known(x, what)
    if found.size != 1:
        raise ArgumentError(f"{what} has shape {found.shape}, not one element")
    (value,) = found.reshape(-1)
    return value if isinstance(value, Dim) else value.item() if isinstance(value, np.generic) else value


def tensor(x: Any) -> Any:
    """A value as a tensor."""
    if not isinstance(x, np.ndarray):
        return x
    x = settled(x)
    if x.dtype == object:
        parts = [full((), n, np.int64) for n in x.flat]
        return F.reshape(F.stack(parts), x.shape) if x.ndim else parts[0]
    return full((), x.item(), x.dtype) if x.ndim == 0 else lift(x)


def _quotient(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a / b; of integers towards zero, of sizes, which are not negative, downwards."""
    if object in (a.dtype, b.dtype):
        return a // b
    if a.dtype.kind == "f":
        return a / b
    if not np.all(b):
        raise ArgumentError("an integer is divided by zero")
    whole = np.abs(a) // np.abs(b)
    return np.where((a < 0) != (b < 0), -whole, whole).astype(a.dtype)


def _compared(relation: Callable[[Any, Any], Any]) -> Callable[..., np.ndarray]:
    return lambda a, b: np.asarray(relation(a, b)).astype(bool)


FOLDED: dict[str, Callable[..., Any]] = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": _quotient, "Neg": np.negative, "Abs": np.abs,
    "Equal": _compared(np.equal), "Less": _compared(np.less), "Greater": _compared(np.greater),
    "LessOrEqual": _compared(np.less_equal), "GreaterOrEqual": _compared(np.greater_equal),
    "And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor, "Not": np.logical_not, "Where": np.where,
    "Floor": np.floor, "Ceil": np.ceil, "Sqrt": np.sqrt,
    "Min": lambda *x: _folded(np.minimum, x), "Max": lambda *x: _folded(np.maximum, x),
}  # fmt: skip
"""Elementwise operators of which numpy has the bits."""


def _folded(join: Callable[[Any, Any], Any], x: Sequence[Any]) -> Any:
    total = x[0]
    for each in x[1:]:
        total = join(total, each)
    return total


def fold(kind: str, x: Sequence[np.ndarray]) -> np.ndarray | None:
    """The result for known operands; None where an engine has to compute it."""
    if sum(each.size for each in x) > MOST or (any(each.dtype == object for each in x) and kind in ("Floor", "Ceil")):
        return None
    with np.errstate(all="ignore"):
        made = np.asarray(FOLDED[kind](*x))
    return settled(made)


def small(shape: Sequence[Any]) -> bool:
    """Whether an array of such sizes may be known."""
    total = 1
    for n in shape:
        if isinstance(n, Dim):
            return False
        total *= int(n)
    return total <= MOST


def require_room(shape: Sequence[Any], what: str) -> None:
    """Refuse sizes that no memory has, before numpy meets them.

    Raises
    ------
    AllocationError : more than 2^48 elements; ArgumentError : a negative size.
    """
    total = 1
    for n in shape:
        if not isinstance(n, Dim):
            if n < 0:
                raise ArgumentError(f"{what} has sizes {list(shape)}")
            total *= max(int(n), 1)
    if total > 1 << 48:
        raise AllocationError(f"{what} has sizes {list(shape)}, for which no memory is large enough")
