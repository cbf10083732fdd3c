"""Divergences by expectations: the logarithm of q's density is a sum of terms whose means under p are known."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from common.distributions.extreme_values import Pareto
from common.distributions.positive_half import Exponential, Gamma
from common.distributions.real_line import EULER, Gumbel, HalfNormal, Laplace, Normal, Uniform
from common.distributions.unit_interval import Beta, ContinuousBernoulli
from common.ops import functional as F

Mean = Callable[[Any], Any]


def _mean_log_of_uniform(p: Any) -> Any:
    return (F.xlogy(p.high, p.high) - F.xlogy(p.low, p.low)) / (p.high - p.low) - 1


#: The mean of log(x).
MEAN_LOG: dict[type, Mean] = {
    Beta: lambda p: F.digamma(p.concentration1) - F.digamma(p.concentration1 + p.concentration0),
    Exponential: lambda p: -EULER - F.log(p.rate),
    Gamma: lambda p: F.digamma(p.concentration) - F.log(p.rate),
    Pareto: lambda p: F.log(p.scale) + 1 / p.alpha,
    Uniform: _mean_log_of_uniform,
}  # fmt: skip
#: The mean of log(1 - x).
MEAN_LOG_OF_REST: dict[type, Mean] = {
    Beta: lambda p: F.digamma(p.concentration0) - F.digamma(p.concentration1 + p.concentration0),
    Uniform: lambda p: (F.xlogy(1 - p.low, 1 - p.low) - F.xlogy(1 - p.high, 1 - p.high)) / (p.high - p.low) - 1,
}  # fmt: skip
#: The mean of exp(t x), t below 0.
MEAN_EXP: dict[type, Callable[[Any, Any], Any]] = {
    Exponential: lambda p, t: p.rate / (p.rate - t),
    Gamma: lambda p, t: F.exp(-p.concentration * F.log1p(-t / p.rate)),
    Gumbel: lambda p, t: F.exp(t * p.loc + F.lgamma(1 - t * p.scale)),
    Normal: lambda p, t: F.exp(t * p.loc + F.square(t * p.scale) / 2),
    Uniform: lambda p, t: (F.exp(t * p.high) - F.exp(t * p.low)) / (t * (p.high - p.low)),
}  # fmt: skip
#: The ends of the support, as tensors or numbers.
ENDS: dict[type, Callable[[Any], tuple[Any, Any]]] = {
    Beta: lambda p: (0.0, 1.0), ContinuousBernoulli: lambda p: (0.0, 1.0),
    Exponential: lambda p: (0.0, math.inf), Gamma: lambda p: (0.0, math.inf), HalfNormal: lambda p: (0.0, math.inf),
    Pareto: lambda p: (p.scale, math.inf), Uniform: lambda p: (p.low, p.high),
}  # fmt: skip


def ends(p: Any) -> tuple[Any, Any]:
    """Where the support of a distribution begins and ends."""
    return next((f(p) for kind, f in ENDS.items() if isinstance(p, kind)), (-math.inf, math.inf))


def _of(table: dict[type, Any], p: Any) -> Any:
    return next(f for kind, f in table.items() if isinstance(p, kind))


def _normal(p: Any, q: Any) -> Any:
    spread = p.variance + F.square(p.mean - q.loc)
    return -spread / (2 * F.square(q.scale)) - F.log(q.scale) - 0.5 * math.log(2 * math.pi)


def _gumbel(p: Any, q: Any) -> Any:
    t = -1 / q.scale
    return (q.loc - p.mean) / q.scale - F.exp(q.loc / q.scale) * _of(MEAN_EXP, p)(p, t) - F.log(q.scale)


def _gamma(p: Any, q: Any) -> Any:
    a, log = q.concentration, _of(MEAN_LOG, p)(p)
    return a * F.log(q.rate) - F.lgamma(a) + (a - 1) * log - q.rate * p.mean


def _beta(p: Any, q: Any) -> Any:
    a, b = q.concentration1, q.concentration0
    scale = F.lgamma(a + b) - F.lgamma(a) - F.lgamma(b)
    return scale + (a - 1) * _of(MEAN_LOG, p)(p) + (b - 1) * _of(MEAN_LOG_OF_REST, p)(p)


def _pareto(p: Any, q: Any) -> Any:
    return F.log(q.alpha) + q.alpha * F.log(q.scale) - (q.alpha + 1) * _of(MEAN_LOG, p)(p)


def _laplace(p: Any, q: Any) -> Any:
    """The mean distance from a point, for a normal p."""
    apart = (p.loc - q.loc) / p.scale
    inner = math.sqrt(2 / math.pi) * F.exp(-0.5 * F.square(apart)) + apart * F.erf(apart / math.sqrt(2))
    return -F.log(2 * q.scale) - p.scale * inner / q.scale


def _exponential(p: Any, q: Any) -> Any:
    return F.log(q.rate) - q.rate * p.mean


def _continuous_bernoulli(p: Any, q: Any) -> Any:
    return p.mean * q.logits + F.log1p(-q.probs) + q._log_norm()


#: The mean, under p, of the logarithm of q's density.
CROSS: dict[Any, Callable[[Any, Any], Any]] = {
    Normal: _normal, Gumbel: _gumbel, Gamma: _gamma, Beta: _beta, Pareto: _pareto, Laplace: _laplace,
    Exponential: _exponential, ContinuousBernoulli: _continuous_bernoulli,
    Uniform: lambda p, q: -F.log(q.high - q.low) + p.mean * 0,
}  # fmt: skip

#: For which p there is a formula, by the family of q.
PAIRS: dict[type, tuple[type, ...]] = {
    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Pareto, Uniform),
    Gumbel: (Exponential, Gamma, Gumbel, Normal, Uniform),
    Gamma: (Beta, Exponential, Gamma, Pareto, Uniform, Gumbel, Laplace, Normal),
    Exponential: (Beta, ContinuousBernoulli, Gamma, Pareto, Uniform, Gumbel, Laplace, Normal),
    Beta: (Beta, Uniform, Exponential, Gamma, Gumbel, Laplace, Normal, Pareto),
    Pareto: (Pareto, Uniform, Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Normal),
    Uniform: (Uniform, Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Normal, Pareto),
    ContinuousBernoulli: (Beta, Uniform, Exponential, Gamma, Gumbel, Laplace, Normal, Pareto), Laplace: (Normal,),
}  # fmt: skip
#: q that are 0 somewhere where any such p is not.
NOT_COVERED: dict[Any, Any] = {
    Gamma: (Gumbel, Laplace, Normal), Exponential: (Gumbel, Laplace, Normal),
    Beta: (Exponential, Gamma, Gumbel, Laplace, Normal, Pareto),
    ContinuousBernoulli: (Exponential, Gamma, Gumbel, Laplace, Normal, Pareto),
    Pareto: (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Normal),
    Uniform: (Exponential, Gamma, Gumbel, Laplace, Normal, Pareto),
}  # fmt: skip


def divergence(p: Any, q: Any, q_kind: type) -> Any:
    """``-entropy(p) - mean under p of log q``; infinite where p reaches beyond the support of q.

    Parameters
    ----------
    q_kind : the family of q for which the formula is.
    """
    if isinstance(p, NOT_COVERED.get(q_kind, ())):
        return F.full_like(p.mean + q.mean, math.inf)
    zero = F.zeros_like(p.mean)
    (p_low, p_high), (q_low, q_high) = ends(p), ends(q)
    covered = F.logical_and(zero + p_low >= q_low, zero + p_high <= q_high)
    return F.where(covered, -p.entropy() - CROSS[q_kind](p, q), math.inf)
