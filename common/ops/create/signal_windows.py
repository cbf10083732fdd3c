"""Windows of signals: the functions of `torch.signal.windows`, and PyTorch's older names for some of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from common.core.docstrings import sections_of
from common.core.dtypes import default_float
from common.core.errors import ArgumentError, DTypeError
from common.core.int_arguments import integer
from common.ops.create.creation import full
from common.ops.create.spaced import linspace
from common.ops.math.arithmetic import abs, sqrt
from common.ops.math.cast import converted
from common.ops.math.compare import clamp_min
from common.ops.math.transcendental import cos, exp, sin
from common.ops.special.by_scipy import i0
from common.tensor.arrays import dtype_or
from common.tensor.create import lift


def _points(op: str, M: Any, sym: bool, dtype: Any, first: float, last: float) -> Any:
    """Points from one end to the other, float64; without the last one of a window that repeats.

    Raises
    ------
    ArgumentError : a negative length.
    DTypeError : a dtype of integers.
    """
    n = integer(M, op, "M")
    if n < 0:
        raise ArgumentError(f"{op} requires non-negative window length, got M={n}")
    wanted = dtype_or(dtype, default_float())
    if wanted.kind != "f":
        raise DTypeError(f"{op} expects float32 or float64 dtypes, got: torch.{wanted}")
    return lift(linspace(first, last, n if sym or n < 2 else n + 1, dtype="float64"))[:n]


def _made(
    op: str, M: Any, sym: bool, dtype: Any, ends: tuple[float, float], shape: Callable[[Any], Any], alone: bool = True
) -> Any:
    """The window `shape` of points between two ends; a window of one point is 1 if `alone` says so."""
    points = _points(op, M, sym, dtype, *ends)
    wanted = dtype_or(dtype, default_float())
    return full((1,), 1.0, dtype=wanted) if M == 1 and alone else converted(shape(points), wanted)


def _last(op: str, M: Any, sym: bool) -> Any:
    """The last point of a window, counted from 0; of one that repeats the first of the next."""
    n = integer(M, op, "M")
    return (n - 1 if sym or n < 2 else n) / 1


def _cosines(op: str, M: Any, a: Sequence[float], sym: bool, dtype: Any) -> Any:
    def shape(t: Any) -> Any:
        total: Any = a[0] + t * 0
        for k, factor in enumerate(a[1:], 1):
            total = total + cos(t * k) * (factor if k % 2 == 0 else -factor)
        return total

    return _made(op, M, sym, dtype, (0.0, 2 * math.pi), shape)


def general_cosine(M: int, *, a: Any, sym: bool = True, dtype: Any = None) -> Any:
    """a[0] - a[1] cos(t) + a[2] cos(2 t) - ... at `M` places t from 0 to 2 pi.

    Parameters
    ----------
    M : the number of points.
    a : the coefficients.
    sym : whether the last place is 2 pi; otherwise it would be the next one, as in a window that repeats.
    dtype : float32 by default.

    Raises
    ------
    ArgumentError : a negative length, or no coefficients.
    DTypeError : a dtype of integers.
    """
    if not isinstance(a, (tuple, list, np.ndarray)):
        raise ArgumentError("Coefficients must be a list/tuple")
    if not len(a):
        raise ArgumentError("Coefficients cannot be empty")
    return _cosines("general_cosine", M, [float(x) for x in a], sym, dtype)


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, dtype: Any = None) -> Any:
    """alpha - (1 - alpha) cos(t).

    Parameters
    ----------
    M, sym, dtype : see `general_cosine`.
    alpha : the mean of the window.
    """
    return _cosines("general_hamming", M, [alpha, 1.0 - alpha], sym, dtype)


def hamming(M: int, *, sym: bool = True, dtype: Any = None) -> Any:
    """0.54 - 0.46 cos(t).

    Parameters
    ----------
    M, sym, dtype : see `general_cosine`.
    """
    return _cosines("hamming", M, [0.54, 0.46], sym, dtype)


@sections_of(hamming)
def hann(M: int, *, sym: bool = True, dtype: Any = None) -> Any:
    """(1 - cos(t)) / 2.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.signal.windows.hann(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return _cosines("hann", M, [0.5, 0.5], sym, dtype)


@sections_of(hamming)
def blackman(M: int, *, sym: bool = True, dtype: Any = None) -> Any:
    """0.42 - 0.5 cos(t) + 0.08 cos(2 t)."""
    return _cosines("blackman", M, [0.42, 0.5, 0.08], sym, dtype)


@sections_of(hamming)
def nuttall(M: int, *, sym: bool = True, dtype: Any = None) -> Any:
    """Nuttall's sum of four cosines.

    References
    ----------
    Nuttall, Some windows with very good sidelobe behavior, 1981.
    """
    return _cosines("nuttall", M, [0.3635819, 0.4891775, 0.1365995, 0.0106411], sym, dtype)


@sections_of(hamming)
def bartlett(M: int, *, sym: bool = True, dtype: Any = None) -> Any:
    """A triangle from 0 to 1 and back."""
    return _made("bartlett", M, sym, dtype, (-1.0, 1.0), lambda t: 1 - abs(t))


@sections_of(hamming)
def cosine(M: int, *, sym: bool = True, dtype: Any = None) -> Any:
    """Half a period of a sine, at the middles of `M` parts."""
    n = max(1, integer(M, "cosine", "M") + (not sym))
    return _made("cosine", M, sym, dtype, (0.5, n - 0.5), lambda t: sin(t * (math.pi / n)))


def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, dtype: Any = None
) -> Any:
    """exp(-|i - center| / tau).

    Parameters
    ----------
    M, sym, dtype : see `general_cosine`.
    center : where it is 1; the middle by default, and of a symmetric window always.
    tau : in how many points it decays, positive.

    Raises
    ------
    ArgumentError : `tau` is not positive, or a centre of a symmetric window.
    """
    if tau <= 0:
        raise ArgumentError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ArgumentError("Center must be None for symmetric windows")
    last = _last("exponential", M, sym)
    middle = last / 2 if center is None else center
    return _made("exponential", M, sym, dtype, (0.0, last), lambda t: exp(-abs(t - middle) / tau), center is None)


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, dtype: Any = None) -> Any:
    """exp(-((i - middle) / std)^2 / 2).

    Parameters
    ----------
    M, sym, dtype : see `general_cosine`.
    std : the standard deviation in points, positive.

    Raises
    ------
    ArgumentError : `std` is not positive.
    """
    if std <= 0:
        raise ArgumentError(f"Standard deviation must be positive, got: {std} instead.")
    last = _last("gaussian", M, sym)

    def shape(t: Any) -> Any:
        apart = (t - last / 2) / std
        return exp(apart * apart * -0.5)

    return _made("gaussian", M, sym, dtype, (0.0, last), shape)


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, dtype: Any = None) -> Any:
    """I0(beta sqrt(1 - t^2)) / I0(beta) at `M` places t from -1 to 1.

    Parameters
    ----------
    M, sym, dtype : see `general_cosine`.
    beta : how narrow it is, not negative.

    Raises
    ------
    ArgumentError : `beta` is negative.
    """
    if beta < 0:
        raise ArgumentError(f"beta must be non-negative, got: {beta} instead.")

    def shape(t: Any) -> Any:
        return i0(sqrt(clamp_min(1 - t * t, 0)) * beta) / i0(t[:1] * 0 + beta)

    return _made("kaiser", M, sym, dtype, (-1.0, 1.0), shape)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (bartlett, blackman, cosine, exponential, gaussian, general_cosine, general_hamming, hamming, hann,
              kaiser, nuttall)
}  # fmt: skip


def bartlett_window(window_length: int, periodic: bool = True, *, dtype: Any = None) -> Any:
    """`signal.windows.bartlett`.

    Parameters
    ----------
    window_length : the number of points.
    periodic : whether it is a window that repeats, without its last point.
    dtype : float32 by default.
    """
    return bartlett(window_length, sym=not periodic, dtype=dtype)


def blackman_window(window_length: int, periodic: bool = True, *, dtype: Any = None) -> Any:
    """`signal.windows.blackman`.

    Parameters
    ----------
    window_length, periodic, dtype : see `bartlett_window`.
    """
    return blackman(window_length, sym=not periodic, dtype=dtype)


def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *, dtype: Any = None
) -> Any:
    """alpha - beta cos(t).

    Parameters
    ----------
    window_length, periodic, dtype : see `bartlett_window`.
    alpha, beta : the coefficients.
    """
    return _cosines("hamming_window", window_length, [alpha, beta], not periodic, dtype)


def hann_window(window_length: int, periodic: bool = True, *, dtype: Any = None) -> Any:
    """`signal.windows.hann`.

    Parameters
    ----------
    window_length, periodic, dtype : see `bartlett_window`.
    """
    return hann(window_length, sym=not periodic, dtype=dtype)


def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: Any = None) -> Any:
    """`signal.windows.kaiser`.

    Parameters
    ----------
    window_length, periodic, dtype : see `bartlett_window`.
    beta : how narrow it is.
    """
    return kaiser(window_length, sym=not periodic, beta=beta, dtype=dtype)


__all__: list[str] = []
