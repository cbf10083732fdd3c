"""Sums and differences whose second operand has a factor."""

from __future__ import annotations

from typing import Any

from common.core.dtypes import bool_, result_dtype
from common.core.errors import ArgumentError
from common.core.operators import as_operand
from common.ops.math import arithmetic
from common.ops.math.cast import to
from common.tensor.base import spec_of


def add(a: Any, b: Any, *, alpha: Any = 1) -> Any:
    """``a + alpha * b``; bools add as logical or.

    Parameters
    ----------
    a, b : (...), broadcast.
    alpha : factor of `b`, rounded with it before the sum.

    Raises
    ------
    ShapeError : the shapes do not broadcast.
    ArgumentError : `alpha` is a float and the operands are integers.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.add(tw.tensor([1.0, 2.0]), tw.tensor([1.0, 1.0]), alpha=10)
    tensor([11., 12.])
    """
    return arithmetic.add(a, as_operand(b) if alpha is _ONE else _scaled("add", a, b, alpha))


def sub(a: Any, b: Any, *, alpha: Any = 1) -> Any:
    """``a - alpha * b``.

    Parameters
    ----------
    a, b : (...), broadcast.
    alpha : factor of `b`, rounded with it before the difference.

    Raises
    ------
    ShapeError : the shapes do not broadcast.
    DTypeError : the operands are bools.
    ArgumentError : `alpha` is a float and the operands are integers.
    """
    return arithmetic.sub(a, as_operand(b) if alpha is _ONE else _scaled("sub", a, b, alpha))


_ONE = 1


def rsub(a: Any, b: Any, *, alpha: Any = 1) -> Any:
    """``b - alpha * a``: `sub` with its operands exchanged.

    Parameters
    ----------
    a, b : (...), broadcast.
    alpha : factor of `a`.

    Raises
    ------
    ShapeError, DTypeError, ArgumentError : see `sub`.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.rsub(tw.tensor([1, 2]), 5)
    tensor([4, 3])
    """
    return sub(as_operand(b), a, alpha=alpha)


def _scaled(op: str, a: Any, b: Any, alpha: Any) -> Any:
    kinds = [x.dtype.kind if hasattr(x, "dtype") else "f" if isinstance(x, float) else "i" for x in (a, b)]
    if isinstance(alpha, float) and "f" not in kinds:
        raise ArgumentError(
            f"{op}(): For integral input tensors, argument alpha must not be a floating point number, got {alpha}"
        )
    if isinstance(alpha, bool) and {*kinds} != {"b"}:
        raise ArgumentError(f"{op}(): Boolean alpha only supported for Boolean results.")
    b = as_operand(b)
    if getattr(b, "dtype", None) == bool_ and kinds[0] == "b":
        return b * bool(alpha)
    if hasattr(b, "dtype") and kinds[1] != "f" and hasattr(a, "dtype"):  # whole numbers would wrap before they meet a
        wanted, _ = result_dtype([spec_of(a), spec_of(b)])
        if wanted != b.dtype and (wanted.kind != "f" or isinstance(alpha, float) or getattr(a, "ndim", 0) >= b.ndim):
            b = to(b, dtype=wanted, x_dtype=b.dtype)
    return b * alpha


__all__ = ["add", "rsub", "sub"]
