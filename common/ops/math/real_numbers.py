"""PyTorch's functions for complex numbers, applied to real ones."""

from __future__ import annotations

import math
from typing import Any

from common.compiler.primitives import constant, select
from common.core.docstrings import sections_of
from common.core.dtypes import default_float
from common.core.errors import DTypeError
from common.ops._define import elementwise
from common.ops.create.like import full_like
from common.ops.math.arithmetic import sign
from common.ops.math.cast import converted
from common.ops.math.compare import eq, isnan, ne, where

angle_ = elementwise(
    "angle", lambda x: select(x == x, select(x < 0.0, constant(math.pi, x), 0.0), x),
    (lambda g, x: where(isnan(x), g, 0),),
    doc="pi where x is negative, 0 elsewhere, and nan of nan. d/dx = 0.", domain="float",
)  # fmt: skip


def angle(x: Any) -> Any:
    """The angle of each number: pi where it is negative, 0 elsewhere, and nan of nan. d/dx = 0.

    Parameters
    ----------
    x : (...); ints become float32.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.angle(tw.tensor([-2.0, 0.0, 3.0]))
    tensor([3.1416, 0.0000, 0.0000])
    """
    return angle_(x if x.dtype.kind == "f" else converted(x, default_float()))


def real(x: Any) -> Any:
    """The tensor itself: its numbers are real.

    Parameters
    ----------
    x : (...)
    """
    return x


@sections_of(real)
def conj(x: Any) -> Any:
    """The tensor itself: its numbers are real."""
    return x


@sections_of(real)
def conj_physical(x: Any) -> Any:
    """The tensor itself: its numbers are real."""
    return x


@sections_of(real)
def resolve_conj(x: Any) -> Any:
    """The tensor itself: no conjugate waits in it."""
    return x


@sections_of(real)
def resolve_neg(x: Any) -> Any:
    """The tensor itself: no sign waits in it."""
    return x


def positive(x: Any) -> Any:
    """The tensor itself; the operator ``+``.

    Parameters
    ----------
    x : (...) numbers.

    Raises
    ------
    DTypeError : bools.
    """
    if x.dtype.kind == "b":
        raise DTypeError("The `+` operator, on a bool tensor is not supported.")
    return x


@sections_of(real)
def sgn(x: Any) -> Any:
    """-1, 0 or 1 as elements are negative, 0 or positive, as `sign`. d/dx = 0.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.sgn(tw.tensor([-3.0, 0.0, 0.5]))
    tensor([-1.,  0.,  1.])
    """
    return sign(x)


@sections_of(real)
def isreal(x: Any) -> Any:
    """Whether elements are real numbers: all are."""
    return full_like(x, True, dtype=bool)


@sections_of(real)
def isneginf(x: Any) -> Any:
    """Whether elements are -inf.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.isneginf(tw.tensor([-tw.inf, 1.0, tw.inf]))
    tensor([ True, False, False])
    """
    return eq(x, -math.inf) if x.dtype.kind == "f" else ne(x, x)


@sections_of(real)
def isposinf(x: Any) -> Any:
    """Whether elements are inf."""
    return eq(x, math.inf) if x.dtype.kind == "f" else ne(x, x)


@sections_of(real)
def is_conj(x: Any) -> bool:
    """False: no conjugate waits in a tensor."""
    return False


@sections_of(real)
def is_neg(x: Any) -> bool:
    """False: no sign waits in a tensor."""
    return False


__all__ = [
    "angle", "conj", "conj_physical", "is_conj", "is_neg", "isneginf", "isposinf", "isreal", "positive", "real",
    "resolve_conj", "resolve_neg", "sgn",
]  # fmt: skip
