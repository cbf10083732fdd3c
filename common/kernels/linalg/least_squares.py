"""The routines of LAPACK for least squares, with the memory that they ask for once per batch."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


@lru_cache(maxsize=256)
def _routine_and_room(driver: str, dtype: np.dtype[Any], m: int, n: int, columns: int, cut: float) -> tuple[Any, Any]:
    """A routine of LAPACK, and the memory that it asks for."""
    from scipy.linalg.lapack import _compute_lwork, get_lapack_funcs

    routine, rooms = get_lapack_funcs((driver, f"{driver}_lwork"), dtype=dtype)
    return routine, _compute_lwork(rooms, m, n, columns, cut)


def solver(driver: str, a: Array, b: Array, cut: float) -> Callable[[Array, Array], tuple[Array, int]]:
    """A function of one of the matrices `a`, by columns, to be overwritten, and of its right-hand sides: x and rank.

    Raises
    ------
    ValueError : an element is infinite or nan.
    LinAlgError : by the function, where the singular values do not converge.
    """
    np.asarray_chkfinite(a), np.asarray_chkfinite(b)
    (m, n), columns = a.shape[-2:], b.shape[-1]
    routine, room = _routine_and_room(driver, a.dtype, m, n, columns, cut)

    def solve(matrix: Array, right: Array) -> tuple[Array, int]:
        given = np.zeros((max(m, n), columns), a.dtype, order="F")
        given[:m] = right
        if driver == "gelsd":
            x, _, rank, info = routine(matrix, given, *room, cut, True, True)
        elif driver == "gelss":
            _, x, _, rank, _, info = routine(matrix, given, cut, room, True, True)
        else:
            _, x, _, rank, info = routine(matrix, given, np.zeros((n, 1), np.int32), cut, room, True, True)
        if info > 0:
            raise np.linalg.LinAlgError("SVD did not converge in Linear Least Squares")
        return x[:n], rank

    return solve
