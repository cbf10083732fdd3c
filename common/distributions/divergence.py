"""The Kullback-Leibler divergence of one distribution from another."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from common.core.errors import ArgumentError, NotDefinedError
from common.distributions import expectations
from common.distributions.categories import Categorical, OneHotCategorical
from common.distributions.counted import Bernoulli, Binomial, Geometric, Poisson
from common.distributions.distribution import known
from common.distributions.extreme_values import Weibull
from common.distributions.gaussian_vectors import (
    LowRankMultivariateNormal,
    MultivariateNormal,
    half_logdet,
    solve_lower,
)
from common.distributions.independent import Independent
from common.distributions.positive_half import Exponential, Gamma, InverseGamma
from common.distributions.random_matrices import Wishart
from common.distributions.real_line import EULER, Cauchy, HalfCauchy, HalfNormal, Laplace, Normal
from common.distributions.simplexes import Dirichlet
from common.distributions.transformed import TransformedDistribution
from common.distributions.transforms import sum_rightmost
from common.distributions.unit_interval import ContinuousBernoulli
from common.ops import functional as F

Rule = Callable[[Any, Any], Any]

#: (type of p, type of q) -> the divergence.
_RULES: dict[tuple[type, type], Rule] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Rule], Rule]:
    """Decorate a function of p and q as the divergence of two families; of several that fit, the narrower counts.

    Parameters
    ----------
    type_p, type_q : subclasses of `Distribution`, or bases that a library's own families have.

    Raises
    ------
    ArgumentError : they are no classes.
    """
    for name, kind in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(kind, type):
            raise ArgumentError(f"Expected {name} to be a Distribution subclass but got {kind!r}")

    def decorate(rule: Rule) -> Rule:
        _RULES[type_p, type_q] = rule
        return rule

    return decorate


def kl_divergence(p: Any, q: Any) -> Any:
    """The mean under p of the logarithm of p's density over q's.

    Parameters
    ----------
    p, q : distributions.

    Returns
    -------
    tensor : (batch), of both batches broadcast; infinite where p has values that q cannot have.

    Raises
    ------
    NotDefinedError : no formula for the two is known.

    Examples
    --------
    >>> import dynamic as tw
    >>> d = tw.distributions
    >>> d.kl_divergence(d.Normal(1.0, 1.0), d.Normal(0.0, 1.0))
    tensor(0.5000)
    """
    for a in type(p).__mro__:
        for b in type(q).__mro__:
            if (rule := _RULES.get((a, b))) is not None:
                return rule(p, q)
    raise NotDefinedError(f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}")


for _q, _kinds in expectations.PAIRS.items():
    for _p in _kinds:
        _RULES[_p, _q] = partial(expectations.divergence, q_kind=_q)


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Any:
    ratio, apart = F.square(p.scale / q.scale), F.square((p.loc - q.loc) / q.scale)
    return 0.5 * (ratio + apart - 1 - F.log(ratio))


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: Any, q: Any) -> Any:
    ratio = F.square(p.scale / q.scale)
    return 0.5 * (ratio - 1 - F.log(ratio))


@register_kl(Exponential, Exponential)
def _exponential(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return ratio - F.log(ratio) - 1


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> Any:
    ratio, apart = p.scale / q.scale, F.abs(p.loc - q.loc)
    return -F.log(ratio) + apart / q.scale + ratio * F.exp(-apart / p.scale) - 1


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Any, q: Any) -> Any:
    """Chyzak and Nielsen, A closed-form formula for the Kullback-Leibler divergence between Cauchy, 2019."""
    return F.log(F.square(p.scale + q.scale) + F.square(p.loc - q.loc)) - F.log(4 * p.scale * q.scale)


@register_kl(HalfCauchy, HalfCauchy)
def _half_cauchy(p: Any, q: Any) -> Any:
    return 2 * F.log(p.scale + q.scale) - F.log(4 * p.scale * q.scale)


@register_kl(InverseGamma, InverseGamma)
def _inverse_gamma(p: Any, q: Any) -> Any:
    """A divergence stays as it is where both are mapped by one function that can be inverted."""
    return kl_divergence(Gamma(p.concentration, p.rate), Gamma(q.concentration, q.rate))


@register_kl(Weibull, Weibull)
def _weibull(p: Any, q: Any) -> Any:
    """Bauckhage, Computing the Kullback-Leibler divergence between two Weibull distributions, 2013."""
    a, b, ratio = p.concentration, q.concentration, F.log(p.scale / q.scale)
    return F.log(a / b) - b * ratio + (b / a - 1) * EULER + F.exp(b * ratio + F.lgamma(b / a + 1)) - 1


@register_kl(Wishart, Wishart)
def _wishart(p: Any, q: Any) -> Any:
    """Bishop, Pattern recognition and machine learning, 2006, appendix B."""
    _checked(p, q)
    a, b, n = p.df / 2, q.df / 2, p.event_shape[0]

    def squares(x: Any) -> Any:
        return F.sum(F.square(solve_lower(q._factor, x)), -1)

    apart = 2 * b * (half_logdet(q._factor) - half_logdet(p._factor)) + a * (_columns(p._factor, squares) - n)
    return apart + F.mvlgamma(b, n) - F.mvlgamma(a, n) + (a - b) * F.sum(F.digamma(p._halves()), -1)


def _weighted_log(weight: Any, p: Any, q: Any) -> Any:
    """``weight (log p - log q)``, 0 where the weight is, infinite where only q is 0."""
    some = weight > 0
    value = weight * (F.log(F.where(some, p, 1.0)) - F.log(F.where(some, q, 1.0)))
    return F.where(F.logical_and(some, q == 0), math.inf, value)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Any:
    a, b = F.broadcast_tensors(p.probs, q.probs)
    return _weighted_log(a, a, b) + _weighted_log(1 - a, 1 - a, 1 - b)


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Any, q: Any) -> Any:
    return -p.entropy() - (p.probs * F.log(q.rate) - q.rate)


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> Any:
    m, n = F.broadcast_tensors(p.total_count, q.total_count)
    if known(m) and known(n) and bool(F.any(m < n)):
        raise NotDefinedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    value = m * (p.probs * (p.logits - q.logits) + F.log1p(-p.probs) - F.log1p(-q.probs))
    return F.where(m > n, math.inf, value)


@register_kl(Poisson, Binomial)
@register_kl(Poisson, Bernoulli)
def _poisson_beyond(p: Any, q: Any) -> Any:
    return F.full_like(p.rate + q.mean, math.inf)


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> Any:
    return p.rate * (F.log(p.rate) - F.log(q.rate)) - (p.rate - q.rate)


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> Any:
    return -p.entropy() - F.log1p(-q.probs) / p.probs - q.logits


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Any:
    a, b = F.broadcast_tensors(p.probs, q.probs)
    value = F.where(a == 0, 0.0, F.where(b == 0, math.inf, a * (p.logits - q.logits)))
    return F.sum(value, -1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: Any, q: Any) -> Any:
    return _categorical(p._categorical, q._categorical)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: Any, q: Any) -> Any:
    apart = p.mean * (p.logits - q.logits) + F.log1p(-p.probs) - F.log1p(-q.probs)
    return apart + p._log_norm() - q._log_norm()


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    total = F.sum(a, -1, True)
    return q._log_scale() - p._log_scale() + F.sum((a - b) * (F.digamma(a) - F.digamma(total)), -1)


def _vectors(p: Any, q: Any, trace: Any, distance: Any, q_logdet: Any, p_logdet: Any) -> Any:
    return 0.5 * (q_logdet - p_logdet + trace + distance - p.event_shape[0])


def _checked(p: Any, q: Any) -> None:
    if tuple(p.event_shape) != tuple(q.event_shape):
        raise ArgumentError(
            f"KL-divergence between two {type(p).__name__}s with different event shapes cannot be computed"
        )


def _columns(matrix: Any, solve: Callable[[Any], Any]) -> Any:
    """The sum, over a matrix's columns, of squares that `solve` gives of vectors in the last dimension."""
    columns = F.movedim(matrix, -1, 0)
    return F.sum(solve(columns), 0)


@register_kl(MultivariateNormal, MultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _to_full(p: Any, q: Any) -> Any:
    _checked(p, q)
    factor = q.scale_tril

    def squares(x: Any) -> Any:
        return F.sum(F.square(solve_lower(factor, x)), -1)

    trace = _columns(p.scale_tril, squares)
    return _vectors(p, q, trace, squares(q.loc - p.loc), 2 * half_logdet(factor), 2 * half_logdet(p.scale_tril))


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _to_low_rank(p: Any, q: Any) -> Any:
    _checked(p, q)
    trace = _columns(p.scale_tril, q.mahalanobis)
    own = p.logdet() if isinstance(p, LowRankMultivariateNormal) else 2 * half_logdet(p.scale_tril)
    return _vectors(p, q, trace, q.mahalanobis(q.loc - p.loc), q.logdet(), own)


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotDefinedError("KL between Independents that join different numbers of dimensions is not implemented")
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Any:
    if p.transforms != q.transforms or tuple(p.event_shape) != tuple(q.event_shape):
        raise NotDefinedError("KL between TransformedDistributions of other transforms or events is not implemented")
    return kl_divergence(p.base_dist, q.base_dist)
