"""Matrices in the last two dimensions, transposed."""

from __future__ import annotations

from typing import Any

from common.core.errors import ShapeError
from common.ops.shape.view import transpose


def adjoint(x: Any) -> Any:
    """The last two dimensions exchanged, as `mT`: numbers are real.

    Parameters
    ----------
    x : (..., m, n)

    Raises
    ------
    ShapeError : one dimension.
    """
    return matrix_transposed(x, "adjoint()")


def matrix_transposed(x: Any, name: str) -> Any:
    """The last two dimensions exchanged, where there are two; without dimensions as it is."""
    if x.ndim == 1 or (name == "H" and x.ndim > 2):
        wanted = "matrices (2-D tensors)" if name == "H" else "matrices or batches of matrices"
        hint = " For batches of matrices, consider using tensor.mH" if x.ndim > 2 else ""
        raise ShapeError(f"tensor.{name} is only supported on {wanted}. Got {x.ndim}-D tensor.{hint}")
    return transpose(x, -2, -1) if x.ndim else x


__all__ = ["adjoint"]
