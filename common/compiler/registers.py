"""Values of expressions in kernel source: a register or constant of LLVM IR text, and its kind.

A kind is a numpy dtype, a `ArrayKind` or `WORDS`; nothing is converted without being asked for, but one thing: integers
of fewer than 64 bits are widened to int64 by arithmetic, by comparisons with other integers and as indices.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple, TypeAlias

import numpy as np

INT64, BOOL = np.dtype(np.int64), np.dtype(np.bool_)

LLVM: dict[Any, str] = {
    BOOL: "i1",
    np.dtype(np.float32): "float",
    np.dtype(np.float64): "double",
    **{np.dtype(f"{kind}{size}"): f"i{8 * size}" for kind in "iu" for size in (1, 2, 4, 8)},
}
"""The LLVM type of a value in a register, by its dtype."""

DTYPES = {("bool_" if dtype == BOOL else dtype.name): dtype for dtype in LLVM}
"""The dtypes by their names in kernel source."""


class Refused(Exception):
    """A text is not kernel source; the message says why."""


class OneByOne(Exception):
    """A definition has no form for vectors."""


class ArrayKind(NamedTuple):
    """The kind of an array: elements of a dtype at the address in ``bufs[slot]``."""

    dtype: np.dtype[Any]
    slot: int


class _Words:
    """The kind of ``bufs`` and ``args``: int64 that no store of the kernel changes."""

    def __repr__(self) -> str:
        return "words"


WORDS = _Words()
Kind: TypeAlias = np.dtype[Any] | ArrayKind | _Words


class Register(NamedTuple):
    """One value, or one per lane; `literal` is its number where the source says it."""

    text: str
    kind: Kind
    literal: int | None = None
    lanes: int = 1

    @property
    def type(self) -> str:
        """Its LLVM type."""
        return llvm(self.kind, self.lanes)

    @property
    def typed(self) -> str:
        """It and its type, as an operand is written."""
        return f"{llvm(self.kind, self.lanes)} {self.text}"


def llvm(kind: Kind, lanes: int = 1) -> str:
    """The LLVM type of a value in a register, or of a vector of values."""
    one = LLVM[kind] if isinstance(kind, np.dtype) else "ptr"
    return one if lanes == 1 else f"<{lanes} x {one}>"


def storage(dtype: np.dtype[Any]) -> str:
    """The LLVM type of a stored element: numpy stores a bool in a whole byte."""
    return "i8" if dtype == BOOL else LLVM[dtype]


def constant(number: Any, dtype: np.dtype[Any]) -> Register:
    """A number in a dtype, rounded once; an integer must be in range."""
    if dtype == BOOL:
        return Register("true" if number else "false", dtype)
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            exact = float(dtype.type(number))
        # a float is written as the double that it is
        return Register(f"0x{struct.unpack('<Q', struct.pack('<d', exact))[0]:016X}", dtype)
    if number != int(number):
        raise Refused(f"{number} is no {dtype}")
    return Register(str(int(dtype.type(int(number)))), dtype, int(number) if dtype == INT64 else None)


def common_kind(x: Kind, y: Kind) -> Kind | None:
    """The kind of a variable that holds one or the other; None if there is none."""
    if type(x) is type(y) and x == y:
        return x
    if isinstance(x, np.dtype) and isinstance(y, np.dtype) and widens(x) and widens(y):
        return INT64
    return None


def widens(kind: Kind) -> bool:
    """Whether int64 holds every value of an integer dtype."""
    return isinstance(kind, np.dtype) and kind.kind in "iu" and kind != np.uint64
