"""The part of `torch.fft` for real numbers: the order of frequencies, and the frequencies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from common.core.dtypes import default_float, int64
from common.core.errors import ArgumentError
from common.core.int_arguments import integer, integers, normalize_dim
from common.ops.index.advanced_keys import along
from common.ops.math.cast import to
from common.ops.shape.cat import cat
from common.ops.shape.reorder import roll
from common.tensor.arrays import dtype_or


def _rolled(op: str, x: Any, dim: Any, back: bool) -> Any:
    given = range(x.ndim) if dim is None else integers(dim, op, "dim")
    dims = tuple(normalize_dim(d, x.ndim, op) for d in given)
    if not dims or x.ndim == 0:
        return x
    sizes = [x.shape[d] for d in dims]
    return roll(x, tuple((n + 1) // 2 if back else n // 2 for n in sizes), dims)


def fftshift(x: Any, dim: Any = None) -> Any:
    """Frequencies in ascending order: those of `fftfreq` rolled so that 0 is in the middle.

    Parameters
    ----------
    x : (...)
    dim : the dimension, or several; all by default.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.fft.fftshift(tw.tensor([0, 1, 2, -2, -1]))
    tensor([-2, -1,  0,  1,  2])
    """
    return _rolled("fftshift", x, dim, False)


def ifftshift(x: Any, dim: Any = None) -> Any:
    """The inverse of `fftshift`.

    Parameters
    ----------
    x, dim : see `fftshift`.
    """
    return _rolled("ifftshift", x, dim, True)


def _frequencies(op: str, n: Any, d: float, dtype: Any, real: bool) -> Any:
    count = integer(n, op, "n")
    if count <= 0:
        raise ArgumentError(f"{op}(): n must be positive, got {count}")
    if real:
        places = along(count // 2 + 1, 0)
    else:
        half = (count + 1) // 2
        places = cat([along(half, 0), along(count - half, 0) - count // 2], 0)
    return to(places, dtype=dtype_or(dtype, default_float()), x_dtype=int64) * (1.0 / (count * d))


def fftfreq(n: int, d: float = 1.0, *, dtype: Any = None) -> Any:
    """The frequencies of the discrete Fourier transform of `n` samples: 0, 1, ..., -2, -1, divided by n d.

    Parameters
    ----------
    n : the number of samples.
    d : the distance of two.
    dtype : float32 by default.

    Raises
    ------
    ArgumentError : `n` is not positive.
    """
    return _frequencies("fftfreq", n, d, dtype, False)


def rfftfreq(n: int, d: float = 1.0, *, dtype: Any = None) -> Any:
    """The frequencies of the discrete Fourier transform of `n` real samples, which are not negative.

    Parameters
    ----------
    n, d, dtype : see `fftfreq`.
    """
    return _frequencies("rfftfreq", n, d, dtype, True)


FUNCTIONS: dict[str, Callable[..., Any]] = {"fftshift": fftshift, "ifftshift": ifftshift}
CREATION: dict[str, Callable[..., Any]] = {"fftfreq": fftfreq, "rfftfreq": rfftfreq}

__all__: list[str] = []
