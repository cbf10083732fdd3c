"""Draws as quantiles at uniform numbers: of gamma, beta, Poisson, binomial and von Mises distributions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from common.core.op import Op
from common.ops._samples import Rng, positive
from common.ops.math.special_functions import digamma, lgamma
from common.ops.math.transcendental import exp, log, log1p
from common.ops.special.by_scipy import scipys

BY_QUANTILES = "common.kernels.math.quantiles", "drawn"
COUNTED = "common.kernels.math.counted_draws"
STEP = 5e-3
"""Of the differences, relative."""


def _uniform(rng: Rng, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    return np.asarray(rng.uniform(0.1, 0.9, shape), dtype)


def _counts(rng: Rng, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    return np.asarray(rng.integers(1, 9, shape), dtype)


def _over_gamma_density(y: Any, a: Any) -> Any:
    return exp(lgamma(a) + y - (a - 1) * log(y))


def _over_beta_density(y: Any, a: Any, b: Any) -> Any:
    return exp(lgamma(a) + lgamma(b) - lgamma(a + b) - (a - 1) * log(y) - (b - 1) * log1p(-y))


def _by_difference(f: Callable[[Any], Any], a: Any) -> Any:
    """The derivative of f at a, by differences of the fourth order along the logarithm of a."""
    def apart(step: float) -> Any:
        return f(a * math.exp(step)) - f(a * math.exp(-step))

    return (apart(STEP) * 8 - apart(2 * STEP)) / (a * (12 * STEP))


def _gamma_by_both(g: Any, y: Any, a: Any, u: Any) -> Any:
    x = gamma_quantile(a, u)
    return g * _over_gamma_density(x, a) * (digamma(a) - log(x) + (1 - (a - 1) / x) * y)


gamma_quantile_by_a: Op = scipys(
    "gamma_quantile_by_a", ("a", "u"),
    (lambda g, a, u: g * _by_difference(lambda b: gamma_quantile_by_a(b, u), a), _gamma_by_both),
    positive, _uniform, by=BY_QUANTILES,
    doc="The derivative of gamma_quantile by a, by differences of the fourth order; so is its own by a. Each order "
        "loses three of its eleven digits.",
)  # fmt: skip
gamma_quantile: Op = scipys(
    "gamma_quantile", ("a", "u"),
    (lambda g, a, u: g * gamma_quantile_by_a(a, u), lambda g, y, a: g * _over_gamma_density(y, a)),
    positive, _uniform, by=BY_QUANTILES,
    doc="The y with gammainc(a, y) = u. d/du = gamma(a) y^(1 - a) e^y; d/da = gamma_quantile_by_a(a, u).",
)  # fmt: skip


def _beta_by_both(g: Any, y: Any, a: Any, b: Any, u: Any, own: Any) -> Any:
    x = beta_quantile(a, b, u)
    bent = (b - 1) / (1 - x) - (a - 1) / x
    return g * _over_beta_density(x, a, b) * (own(a, b, x) + bent * y)


beta_quantile_by_a: Op = scipys(
    "beta_quantile_by_a", ("a", "b", "u"),
    (lambda g, a, b, u: g * _by_difference(lambda c: beta_quantile_by_a(c, b, u), a),
     lambda g, a, b, u: g * _by_difference(lambda c: beta_quantile_by_a(a, c, u), b),
     lambda g, y, a, b, u: _beta_by_both(g, y, a, b, u, lambda a, b, x: digamma(a) - digamma(a + b) - log(x))),
    positive, positive, _uniform, by=BY_QUANTILES,
    doc="The derivative of beta_quantile by a, by differences of the fourth order; so are its own by a and b. Each "
        "order loses three of its eleven digits.",
)  # fmt: skip
beta_quantile_by_b: Op = scipys(
    "beta_quantile_by_b", ("a", "b", "u"),
    (lambda g, a, b, u: g * _by_difference(lambda c: beta_quantile_by_b(c, b, u), a),
     lambda g, a, b, u: g * _by_difference(lambda c: beta_quantile_by_b(a, c, u), b),
     lambda g, y, a, b, u: _beta_by_both(g, y, a, b, u, lambda a, b, x: digamma(b) - digamma(a + b) - log1p(-x))),
    positive, positive, _uniform, by=BY_QUANTILES,
    doc="The derivative of beta_quantile by b, by differences of the fourth order; so are its own by a and b. Each "
        "order loses three of its eleven digits.",
)  # fmt: skip
beta_quantile: Op = scipys(
    "beta_quantile", ("a", "b", "u"),
    (lambda g, a, b, u: g * beta_quantile_by_a(a, b, u), lambda g, a, b, u: g * beta_quantile_by_b(a, b, u),
     lambda g, y, a, b: g * _over_beta_density(y, a, b)),
    positive, positive, _uniform, by=BY_QUANTILES,
    doc="Below y the beta distribution of a and b has the probability u. d/du = 1 / its density at y; d/da, d/db = "
        "beta_quantile_by_a, beta_quantile_by_b of (a, b, u).",
)  # fmt: skip
poisson_quantile: Op = scipys(
    "poisson_quantile", ("rate", "u"), (None, None), positive, _uniform, by=BY_QUANTILES, written=COUNTED,
    doc="The smallest count up to which the Poisson distribution has at least the probability u. No derivative.",
)  # fmt: skip
binomial_quantile: Op = scipys(
    "binomial_quantile", ("n", "p", "u"), (None, None, None), _counts, _uniform, _uniform, by=BY_QUANTILES,
    written=COUNTED,
    doc="The smallest count up to which the binomial distribution has at least the probability u. No derivative.",
)  # fmt: skip
von_mises_draw: Op = scipys(
    "von_mises_draw", ("k", "u"), (None, None), positive, _uniform, by=BY_QUANTILES,
    doc="An angle from the von Mises distribution of concentration k, a function of the bits of u. No derivative.",
)  # fmt: skip
