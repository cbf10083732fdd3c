"""Orthogonal polynomials by their three-term recurrences, in float64."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

#: The largest degree; a larger one gives NaN.
LIMIT = 65536

Step = Callable[[int, np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def _doubled(k: int, x: np.ndarray, p: np.ndarray, q: np.ndarray) -> np.ndarray:
    return 2.0 * x * p - q


#: By name: the polynomial of degree 1, and that of degree k + 1 from those of degrees k and k - 1.
POLYNOMIALS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], Step]] = {
    "chebyshev_polynomial_t": (lambda x: x, _doubled),
    "chebyshev_polynomial_u": (lambda x: 2.0 * x, _doubled),
    "chebyshev_polynomial_v": (lambda x: 2.0 * x - 1.0, _doubled),
    "chebyshev_polynomial_w": (lambda x: 2.0 * x + 1.0, _doubled),
    "hermite_polynomial_h": (lambda x: 2.0 * x, lambda k, x, p, q: 2.0 * (x * p - k * q)),
    "hermite_polynomial_he": (lambda x: x, lambda k, x, p, q: x * p - k * q),
    "laguerre_polynomial_l": (lambda x: 1.0 - x, lambda k, x, p, q: ((2 * k + 1 - x) * p - k * q) / (k + 1)),
    "legendre_polynomial_p": (lambda x: x, lambda k, x, p, q: ((2 * k + 1) * x * p - k * q) / (k + 1)),
}


def orthogonal_polynomial(*operands_and_name: object) -> np.ndarray:
    """The polynomial that the last argument names, of the argument and the degrees before it.

    Degrees lose their fraction. A negative degree gives 0; NaN, and a degree above `LIMIT`, give NaN.

    Returns
    -------
    ndarray : of the dtype of the argument, rounded once.
    """
    given, degrees, name = operands_and_name
    assert isinstance(given, np.ndarray)
    assert isinstance(degrees, np.ndarray)
    assert isinstance(name, str)
    x = np.asarray(given, np.float64)
    if name.startswith("shifted_"):
        x, name = 2.0 * x - 1.0, name.removeprefix("shifted_")
    first, following = POLYNOMIALS[name]
    n = np.trunc(np.asarray(degrees, np.float64))
    y = np.where(n < 0, 0.0, np.where(n == 0, 1.0, np.nan))
    top = int(np.max(n, initial=0.0, where=n <= LIMIT))
    with np.errstate(all="ignore"):
        previous, p = np.ones_like(x), np.asarray(first(x))
        for k in range(1, top + 1):
            y = np.where(n == k, p, y)
            if k < top:
                previous, p = p, np.asarray(following(k, x, p, previous))
        return np.asarray(y).astype(given.dtype)


__all__ = ["LIMIT", "POLYNOMIALS", "orthogonal_polynomial"]
