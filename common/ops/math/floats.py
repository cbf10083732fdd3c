"""Signs, infinities, NaN and nearness of floating-point numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from common.compiler.primitives import absolute, is_float, select
from common.compiler.primitives import copysign as _copysign
from common.core import mode
from common.core.errors import ArgumentError, DTypeError
from common.core.op import Op
from common.kernels.math import exact
from common.ops._define import elementwise
from common.ops.math.arithmetic import zeros_like
from common.ops.math.cast import clone
from common.ops.math.compare import eq, ge, isnan, le, logical_and, logical_not, logical_or, ne, where
from common.tensor.base import Tensor

isfinite = elementwise("isfinite", exact.isfinite, doc="Whether x is neither infinite nor nan.", result="bool")
isinf = elementwise("isinf", exact.isinf, doc="Whether x is infinite.", result="bool")
signbit = elementwise("signbit", exact.signbit, doc="Whether x is negative, -0 included; a nan counts as positive.",
                      result="bool")  # fmt: skip

copysign = elementwise(
    "copysign", lambda a, b: _copysign(a, b),
    (lambda g, y, a: where(eq(a, 0), 0, where(eq(signbit(a), signbit(y)), g, -g)),
     lambda g: zeros_like(g)),
    doc="The magnitude of a with the sign of b; a nan b counts as positive. d/da = y / a, 0 at 0; d/db = 0.",
    domain="float",
)  # fmt: skip

fmax = elementwise(
    "fmax", lambda a, b: exact.fmax(a, b),
    (lambda g, a, b: where(logical_or(ge(a, b), isnan(b)), g, 0),
     lambda g, a, b: where(logical_or(ge(a, b), isnan(b)), 0, g)),
    doc="The larger one; the other one of a nan; +0 is larger than -0. d/da = 1 where a >= b, else d/db = 1.",
)  # fmt: skip

fmin = elementwise(
    "fmin", lambda a, b: exact.fmin(a, b),
    (lambda g, a, b: where(logical_or(le(a, b), isnan(b)), g, 0),
     lambda g, a, b: where(logical_or(le(a, b), isnan(b)), 0, g)),
    doc="The smaller one; the other one of a nan; -0 is smaller than +0. d/da = 1 where a <= b, else d/db = 1.",
)  # fmt: skip

heaviside = elementwise("heaviside", lambda a, b: exact.heaviside(a, b), doc="0 below 0, 1 above, b at 0; 0 for nan.")


def _replace(x: Any, nan: Any, posinf: Any, neginf: Any) -> Any:
    if not is_float(x):
        return x
    infinite = select(absolute(x) == np.inf, select(x > 0, posinf, neginf), x)
    return select(x == x, infinite, nan)


_nan_to_num: Op = elementwise(
    "nan_to_num", _replace, (lambda g, x: where(isfinite(x), g, 0),),
    doc="x, with nan and the infinities replaced. d/dx = 1 where x is finite, else 0.",
)  # fmt: skip


def nan_to_num(x: Any, nan: float | None = None, posinf: float | None = None, neginf: float | None = None) -> Any:
    """`x` with numbers in the place of NaN and the infinities.

    Parameters
    ----------
    x : (...); ints stay as they are.
    nan : by default 0.
    posinf, neginf : by default the largest and the smallest finite number of the dtype.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.nan_to_num(tw.tensor([float("nan"), float("inf"), 1.0]), posinf=9)
    tensor([0., 9., 1.])
    """
    if x.dtype.kind == "b":
        return clone(x)
    if x.dtype.kind != "f":
        return _nan_to_num(x, 0, 0, 0)
    largest = float(np.finfo(x.dtype).max)
    return _nan_to_num(
        x, 0.0 if nan is None else nan, largest if posinf is None else posinf, -largest if neginf is None else neginf
    )


def _near(a: Any, b: Any, rtol: Any, atol: Any) -> Any:
    difference = absolute(a - b)
    return (a == b) | ((difference < np.inf) & (difference <= atol + absolute(rtol * b)))


_isclose = elementwise("isclose", _near, doc="a = b, or a finite |a - b| <= atol + |rtol b|.", domain="float",
                       result="bool")  # fmt: skip


def isclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Any:
    """Whether ``|a - b| <= atol + rtol * |b|``, element by element; infinities are close to themselves only.

    Parameters
    ----------
    a, b : (...) of one dtype, broadcast against each other. Ints are compared as float32.
    rtol, atol : relative and absolute tolerance, not negative; with both 0 it is equality.
    equal_nan : whether NaN is close to NaN.

    Raises
    ------
    DTypeError : the dtypes differ.
    ArgumentError : a negative tolerance.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.isclose(tw.tensor([1.0, 2.0]), tw.tensor([1.0, 2.1]), rtol=0.01)
    tensor([ True, False])
    """
    if hasattr(b, "dtype") and a.dtype != b.dtype:
        raise DTypeError(f"isclose(): {a.dtype} did not match {b.dtype}; convert one of them with .to()")
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if not tolerance >= 0:
            raise ArgumentError(f"isclose(): {name} must be greater than or equal to zero, but got {tolerance}")
    close = eq(a, b) if rtol == 0 and atol == 0 else _isclose(a, b, rtol, atol)
    return logical_or(close, logical_and(isnan(a), isnan(b))) if equal_nan else close


def allclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements are close.

    Parameters
    ----------
    a, b, rtol, atol, equal_nan : see `isclose`.

    Raises
    ------
    TraceError : inside a traced function, where no element is known.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.allclose(tw.tensor([1.0, float("nan")]), tw.tensor([1.0, float("nan")]), equal_nan=True)
    True
    """
    from common.ops.reduce.reductions import sum

    return not bool(sum(logical_not(isclose(a, b, rtol, atol, equal_nan))).item())


def equal(a: Any, b: Any) -> bool:
    """Whether two tensors have the same shape and equal elements; nan equals nothing.

    Parameters
    ----------
    a, b : (...)

    Raises
    ------
    TraceError : inside a traced function, where no element is known.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.equal(tw.tensor([1, 2]), tw.tensor([1, 2])), tw.equal(tw.tensor([1, 2]), tw.tensor([1]))
    (True, False)
    """
    if type(a) is type(b) is Tensor and not mode.tracing and a.payload.dtype == b.payload.dtype:
        x, y = a.payload, b.payload
        if x.shape != y.shape:
            return False
        differ = x != y
        return not (differ.size and differ.item(differ.argmax()))
    if tuple(a.shape) != tuple(b.shape):
        return False
    from common.ops.reduce.reductions import sum

    return not bool(sum(ne(a, b)).item())


__all__ = [
    "allclose", "copysign", "equal", "fmax", "fmin", "heaviside", "isclose", "isfinite", "isinf", "nan_to_num",
    "signbit",
]  # fmt: skip
