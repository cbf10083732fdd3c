"""What is told of matrices that have no factors, or whose algorithm does not converge."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from common.core.errors import LinAlgError

Array = np.ndarray
R = TypeVar("R")


def each_item(batch: tuple[int, ...]) -> Iterable[tuple[int, ...]]:
    """The places of a batch's matrices."""
    return np.ndindex(*batch) if batch else ((),)


def _told(user: str, place: tuple[int, ...], batch: tuple[int, ...], what: str) -> LinAlgError:
    number = int(np.ravel_multi_index(place, batch)) if batch else 0
    return LinAlgError(f"{user}: {f'(Batch element {number}): ' if batch else ''}{what}")


def check_factor(info: Array, user: str) -> None:
    """Raise the error of a Cholesky factorisation that has failed, if there is somebody to tell."""
    for place in each_item(info.shape if user else ()):
        if user and info[place]:
            raise _told(
                user, place, info.shape,
                "The factorization could not be completed because the input is not positive-definite (the leading "
                f"minor of order {info[place]} is not positive-definite).",
            )  # fmt: skip


def check_solve(info: Array, user: str) -> None:
    """Raise the error of a singular matrix, if there is somebody to tell."""
    what = "The solver failed because the input matrix is singular."
    for place in each_item(info.shape if user else ()):
        if user and info[place]:
            if user.startswith("linalg.inv"):
                what = (
                    f"The diagonal element {info[place]} is zero, the inversion could not be completed because the "
                    "input matrix is singular."
                )
            elif user.startswith("linalg.lu"):
                what = f"U[{info[place]},{info[place]}] is zero and using it on lu_solve would result in a "
                what += "division by zero."
            raise _told(user, place, info.shape, what)


def check_convergence(failed: Any, user: str) -> None:
    """Raise the error of an algorithm that has not converged."""
    if np.any(failed):
        raise LinAlgError(f"{user}: The algorithm did not converge.")


def converging(compute: Callable[[], R], user: str, x: Array) -> R:
    """Run an iterative algorithm of numpy's; report its failure in PyTorch's words."""
    try:
        with np.errstate(all="ignore"):
            return compute()
    except np.linalg.LinAlgError as error:
        reason = "did not converge."
        if not np.isfinite(x).all():
            reason = "failed to converge because the input matrix contained non-finite values."
        raise LinAlgError(f"{user}: The algorithm {reason}") from error


def require_finite(a: Array, user: str) -> None:
    """Refuse matrices whose decomposition by LAPACK would be undefined.

    Raises
    ------
    LinAlgError : an element is not finite.
    """
    if not np.isfinite(a).all():
        raise LinAlgError(
            f"{user}: The algorithm failed to converge because the input matrix contained non-finite values."
        )
