"""Products of the array API standard."""

from __future__ import annotations

from typing import Any

from common.api.standard.array_elementwise import promoted
from common.core.errors import ShapeError
from common.ops import functional
from common.ops.linalg import linalg_namespace
from common.tensor.create import operand

__all__ = ["matmul", "matrix_transpose", "tensordot", "vecdot"]


def matmul(x1: Any, x2: Any, /) -> Any:
    """The product of matrices.

    Parameters
    ----------
    x1 : (..., n, k) or (k).
    x2 : (..., k, m) or (k).
    """
    return functional.matmul(*promoted(x1, x2))


def matrix_transpose(x: Any, /) -> Any:
    """Rows as columns.

    Parameters
    ----------
    x : (..., n, m).
    """
    return functional.transpose(operand(x), -1, -2)


def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Any:
    """The sum over pairs of dimensions of products.

    Parameters
    ----------
    x1, x2 : (...).
    axes : how many, the last of `x1` and the first of `x2`; or two sequences of dimensions.
    """
    return functional.tensordot(*promoted(x1, x2), axes)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The sum of products along an axis.

    Parameters
    ----------
    x1, x2 : (..., n) after broadcasting.
    axis : along which, from -n to -1.

    Raises
    ------
    ShapeError : the sizes along the axis differ.
    """
    x1, x2 = promoted(x1, x2)
    if x1.shape[axis] != x2.shape[axis]:
        raise ShapeError(f"vecdot(): sizes {x1.shape[axis]} and {x2.shape[axis]} along axis {axis} are not equal")
    return linalg_namespace.FUNCTIONS["vecdot"](x1, x2, dim=axis).to(x1.dtype)
