"""Quantiles of distributions in float64, by SciPy: they turn uniform numbers into draws.

A draw is a function of its parameters and of one uniform number, so it belongs to the stream of its generator as any
other does, and its derivative is that of the quantile. SciPy is imported when one is first needed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

STEP = 5e-3
"""Relative step of the differences; of the fourth order, so their error is about 1e-11."""


def _slope(f: Callable[[np.ndarray], np.ndarray], a: np.ndarray) -> np.ndarray:
    """The derivative of f by the logarithm of its argument, by differences; 0 where f has left the range of float64."""
    near = f(a * np.exp(STEP)) - f(a * np.exp(-STEP))
    far = f(a * np.exp(2 * STEP)) - f(a * np.exp(-2 * STEP))
    slope = (8 * near - far) / (12 * STEP)
    return np.where(np.isfinite(slope), slope, 0)


def gamma_quantile(a: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Below it the gamma distribution of shape `a` and scale 1 has the probability u."""
    from scipy.special import gammaincinv

    return np.asarray(gammaincinv(a, u))


def gamma_quantile_by_a(a: np.ndarray, u: np.ndarray) -> np.ndarray:
    """The derivative of `gamma_quantile` by its shape."""
    x = gamma_quantile(a, u)
    slope = _slope(lambda b: np.log(gamma_quantile(b, u)), a)
    return np.where(x > 0, x * slope / a, 0)


def beta_quantile(a: np.ndarray, b: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Below it the beta distribution of the parameters a and b has the probability u."""
    from scipy.special import betaincinv

    return np.asarray(betaincinv(a, b, u))


def _parts(a: np.ndarray, b: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x and 1 - x to all digits, of the quantile x."""
    return beta_quantile(a, b, u), beta_quantile(b, a, 1 - u)


def _log_odds(a: np.ndarray, b: np.ndarray, u: np.ndarray) -> np.ndarray:
    x, rest = _parts(a, b, u)
    return np.log(x) - np.log(rest)


def beta_quantile_by_a(a: np.ndarray, b: np.ndarray, u: np.ndarray) -> np.ndarray:
    """The derivative of `beta_quantile` by its first parameter."""
    x, rest = _parts(a, b, u)
    slope = _slope(lambda c: _log_odds(c, b, u), a)
    return np.where((x > 0) & (rest > 0), x * rest * slope / a, 0)


def beta_quantile_by_b(a: np.ndarray, b: np.ndarray, u: np.ndarray) -> np.ndarray:
    """The derivative of `beta_quantile` by its second parameter."""
    x, rest = _parts(a, b, u)
    slope = _slope(lambda c: _log_odds(a, c, u), b)
    return np.where((x > 0) & (rest > 0), x * rest * slope / b, 0)


def poisson_quantile(rate: np.ndarray, u: np.ndarray) -> np.ndarray:
    """The smallest count up to which the Poisson distribution has at least the probability u."""
    from scipy.special import pdtr, pdtrik

    counts = np.ceil(np.nan_to_num(pdtrik(u, rate)))
    lower = np.maximum(counts - 1, 0)
    return np.where(rate > 0, np.where(pdtr(lower, rate) >= u, lower, counts), 0)


def binomial_quantile(n: np.ndarray, p: np.ndarray, u: np.ndarray) -> np.ndarray:
    """The smallest count up to which the binomial distribution has at least the probability u."""
    from scipy.special import bdtrik, betainc

    counts = np.clip(np.ceil(np.nan_to_num(bdtrik(u, n, p))), 0, n)
    lower = np.maximum(counts - 1, 0)
    inner = np.where((lower < n) & (betainc(n - lower, lower + 1, 1 - p) >= u), lower, counts)
    return np.where((p <= 0) | (n <= 0), 0, np.where(p >= 1, n, inner))


def von_mises_draw(k: np.ndarray, u: np.ndarray) -> np.ndarray:
    """An angle from the von Mises distribution of the concentration k, by rejection.

    The bits of u begin a stream of its own for each element.

    References
    ----------
    .. [1] D. J. Best, N. I. Fisher: Efficient simulation of the von Mises distribution. Applied Statistics 28 (1979).
    .. [2] G. L. Steele, D. Lea, C. H. Flood: Fast splittable pseudorandom number generators. OOPSLA 2014.
    """
    k, u = np.broadcast_arrays(k, u)
    shape, k, state = k.shape, k.ravel(), np.ascontiguousarray(u).view(np.uint64).ravel().copy()
    k = np.maximum(k, 1e-8)  # below, it is uniform to all digits

    def uniform(places: np.ndarray) -> np.ndarray:
        state[places] += np.uint64(0x9E3779B97F4A7C15)
        z = state[places]
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray((z ^ (z >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53

    t = 1 + np.sqrt(1 + 4 * k * k)
    p = (t - np.sqrt(2 * t)) / (2 * k)
    r = np.where(k < 1e-5, 1 / k + k, (1 + p * p) / (2 * p))  # the difference in p cancels for small k
    angle, open_ = np.zeros(k.shape), np.arange(k.size)
    while open_.size:
        z = np.cos(np.pi * uniform(open_))
        s, c = r[open_], k[open_]
        f = (1 + s * z) / (s + z)
        d = c * (s - f)
        v = uniform(open_)
        taken = (d * (2 - d) > v) | (np.log(d / v) + 1 - d >= 0)
        sign = np.where(uniform(open_) < 0.5, -1.0, 1.0)
        angle[open_] = np.where(taken, sign * np.arccos(np.clip(f, -1, 1)), 0)
        open_ = open_[~taken]
    return angle.reshape(shape)


QUANTILES = (
    gamma_quantile, gamma_quantile_by_a, beta_quantile, beta_quantile_by_a, beta_quantile_by_b,
    poisson_quantile, binomial_quantile, von_mises_draw,
)  # fmt: skip


def drawn(*operands_and_name: object) -> np.ndarray:
    """The function of `QUANTILES` that the last argument names, of the arrays before it, in the first one's dtype."""
    *arrays, name = operands_and_name
    assert isinstance(name, str)
    assert isinstance(arrays[0], np.ndarray)
    from scipy import special

    (function,) = (f for f in QUANTILES if f.__name__ == name)
    with np.errstate(all="ignore"), special.errstate(all="ignore"):
        y = function(*(np.asarray(x, np.float64) for x in arrays))
    return np.asarray(y).astype(arrays[0].dtype)
