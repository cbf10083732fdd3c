"""Python numbers as arguments of a `function` or a gradient rule: their arithmetic is the registry's, as in a graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from common.core.dtypes import SUPPORTED, unsupported
from common.core.errors import ArgumentError
from common.core.int_arguments import shown


class Number(float):
    """A float argument: a weak float64 whose ``+ - *`` are IEEE 754's and whose ``/`` and ``**`` are ops.

    Python's own ``**`` calls the C library, whose bits differ between systems, and ``1.0 / 0.0`` raises; ops do
    neither. An op of such numbers alone gives one too. Everything else is as for floats.

    Examples
    --------
    >>> Number(1.0) / 0
    inf
    """

    __slots__ = ()


class Int(int):
    """An int that a gradient rule is given: a weak int64 whose arithmetic is that of ops.

    Behind a float literal it is Python's to compute: ``0.5 * n`` is a float as others are; write ``n * 0.5``.

    Examples
    --------
    >>> Int(3) / 0, Int(2) ** 62 * 4
    (inf, 0)
    """

    __slots__ = ()


def weak(x: Any) -> Any:
    """A Python number whose arithmetic is that of ops, as it is in a graph; a truth value is as good as it is."""
    kind = type(x)
    return Number(x) if kind is float else Int(x) if kind is int else x


@cache
def ends(dtype: np.dtype[Any]) -> tuple[int, int]:
    """The least and the largest whole number of which a dtype makes elements: of floats those of int64."""
    most = int(np.iinfo(dtype).max) if dtype.kind in "iu" else 2**63 - 1
    return (-most if dtype.kind == "u" else -most - 1), most


def require_held(op: str, dtype: np.dtype[Any], *numbers: float) -> None:
    """Refuse numbers that integers of a dtype do not hold; unsigned ones take negative ints, which wrap.

    Raises
    ------
    ArgumentError : one is out of range, infinite or nan.
    """
    if dtype.kind in "iu":
        low, high = ends(dtype)
        for number in numbers:
            if not (0 if dtype.kind == "u" and isinstance(number, float) else low) <= number <= high:
                raise ArgumentError(f"{op}(): value cannot be converted to type {dtype} without overflow: {number}")


OF_NUMPY = frozenset(np.dtype(code).type for code in ("?", "b", "h", "i", "q", "B", "H", "I", "Q", "e", "f", "d"))
WEAK = frozenset((Number, Int)) | OF_NUMPY
"""Types of numbers that pass for Python's beside a tensor: those of rules, and numpy's scalars, as in PyTorch."""


def plain(operands: Sequence[Any]) -> Sequence[Any]:
    """Operands with Python's own numbers in the place of weak ones, beside a tensor or value, where they are equal."""
    return tuple([_plain(x) if type(x) in WEAK else x for x in operands])


def _plain(x: Any) -> Any:
    kind = type(x)
    return float(x) if kind is Number else int(x) if kind is Int else x.item()


def _exact(name: str) -> Callable[[Number, Any], Any]:
    method = getattr(float, name)

    def operator(self: Number, other: Any) -> Any:
        y = method(self, other)
        return Number(y) if type(y) is float else y

    return operator


def _op(name: str, *, swapped: bool = False) -> Callable[[Any, Any], Any]:
    def operator(self: Any, other: Any) -> Any:
        if not isinstance(other, (int, float)):
            return NotImplemented
        from common.core.op import REGISTRY

        x, y = (float(v) if isinstance(v, float) else int(v) for v in ((other, self) if swapped else (self, other)))
        return weak(REGISTRY[name](x, y).item())

    return operator


for _name in ("add", "sub", "mul"):
    for _prefix in ("__", "__r"):
        setattr(Number, f"{_prefix}{_name}__", _exact(f"{_prefix}{_name}__"))
        setattr(Int, f"{_prefix}{_name}__", _op(_name, swapped=_prefix == "__r"))
for _name, _target in (("truediv", "div"), ("pow", "pow")):
    for _kind in (Number, Int):
        setattr(_kind, f"__{_name}__", _op(_target))
        setattr(_kind, f"__r{_name}__", _op(_target, swapped=True))
Number.__neg__ = lambda self: Number(-float(self))  # type: ignore[method-assign]
Number.__abs__ = lambda self: Number(math.fabs(self))  # type: ignore[method-assign]
Int.__neg__ = lambda self: 0 - self  # type: ignore[method-assign]
Int.__abs__ = lambda self: -self if self < 0 else self  # type: ignore[method-assign]


def check_range(value: int) -> None:
    """Refuse an int that is no int64, in which programs hold their ints.

    Raises
    ------
    ArgumentError : it is out of range.
    """
    if not -(2**63) <= value < 2**63:
        raise ArgumentError(
            f"the number {shown(value)} does not fit into int64, in which ints are held; a float may do"
        )


def as_array(x: Any) -> np.ndarray:
    """A numpy scalar, a list of numbers or an array as an array in native byte order.

    Raises
    ------
    ArgumentError : it is neither.
    DTypeError : a dtype without ops.
    """
    array: np.ndarray = np.asarray(x)
    if array.dtype.kind not in "biuf":
        raise ArgumentError(f"expected a Tensor or a number, not {type(x).__name__} ({shown(x)})")
    if array.dtype.newbyteorder("=") not in SUPPORTED:
        raise unsupported(array.dtype)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def is_foreign(x: Any) -> bool:
    """Whether something is another library's array, which hands its memory over by DLPack."""
    return hasattr(type(x), "__dlpack__") and not (isinstance(x, np.ndarray) or hasattr(type(x), "__op_priority__"))


def taken(x: Any, how: str = "DLPack") -> np.ndarray:
    """An array of numpy's or of another library as a numpy array that shares its memory.

    Raises
    ------
    ArgumentError : it is on another device, requires grad, or its library refuses for another reason.
    """
    if isinstance(x, (np.generic, np.ndarray)):
        return np.asarray(x)
    try:
        array: np.ndarray = np.from_dlpack(x)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise ArgumentError(f"{how}: a {type(x).__name__} cannot be shared: {error}") from error
    return array
