"""Families on the interval from 0 to 1."""

from __future__ import annotations

import math
from typing import Any

from common.distributions import constraints
from common.distributions.distribution import Distribution, ExponentialFamily, Shape, limits, uniform
from common.distributions.odds import Odds, clamp_probs, one_of
from common.distributions.real_line import EULER
from common.distributions.scalar_transforms import SigmoidTransform
from common.distributions.transformed import TransformedDistribution
from common.ops import functional as F
from common.ops.math.special_functions import xlog1py
from common.ops.random import quantile_draws
from common.random.counts import by_quantile
from common.random.generator import draw
from common.tensor.create import lift


class Beta(ExponentialFamily):
    """Beta distributions; gradients of draws are those of the quantile.

    Parameters
    ----------
    concentration1, concentration0 : alpha and beta.
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self._hold(validate_args, concentration1=concentration1, concentration0=concentration0)

    def _family_draw(self, shape: Shape) -> Any:
        x = by_quantile("beta_quantile", shape, self.concentration1, self.concentration0)
        return F.clamp(x, min=float(limits(x).tiny), max=1 - float(limits(x).epsneg))

    @property
    def _total(self) -> Any:
        return self.concentration1 + self.concentration0

    def _log_beta(self) -> Any:
        return F.lgamma(self.concentration1) + F.lgamma(self.concentration0) - F.lgamma(self._total)

    def _family_log_prob(self, value: Any) -> Any:
        a, b = self.concentration1, self.concentration0
        return F.xlogy(a - 1, value) + xlog1py(b - 1, -value) - self._log_beta()

    def _family_entropy(self) -> Any:
        a, b, total = self.concentration1, self.concentration0, self._total
        inner = (a - 1) * F.digamma(a) + (b - 1) * F.digamma(b) - (total - 2) * F.digamma(total)
        return self._log_beta() - inner

    def _family_icdf(self, p: Any) -> Any:
        return quantile_draws.beta_quantile(*F.broadcast_tensors(self.concentration1, self.concentration0, p))

    def _family_mean(self) -> Any:
        return self.concentration1 / self._total

    def _family_mode(self) -> Any:
        a, b = self.concentration1, self.concentration0
        inner = (a - 1) / (self._total - 2)
        ends = F.where(a < b, F.zeros_like(a), F.where(a > b, F.ones_like(a), math.nan))
        return F.where(F.logical_and(a > 1, b > 1), inner, ends)

    def _family_variance(self) -> Any:
        total = self._total
        return self.concentration1 * self.concentration0 / (F.square(total) * (total + 1))


class Kumaraswamy(Distribution):
    """Kumaraswamy's distributions, ``1 - (1 - x^a)^b`` up to x.

    Parameters
    ----------
    concentration1, concentration0 : a and b.
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self._hold(validate_args, concentration1=concentration1, concentration0=concentration0)

    def _family_draw(self, shape: Shape) -> Any:
        return self._family_icdf(uniform(shape, self.concentration1.dtype))

    def _family_log_prob(self, value: Any) -> Any:
        a, b = self.concentration1, self.concentration0
        return F.log(a * b) + F.xlogy(a - 1, value) + xlog1py(b - 1, -F.pow(value, a))

    def _family_entropy(self) -> Any:
        a, b = self.concentration1, self.concentration0
        return 1 - 1 / b + (1 - 1 / a) * (F.digamma(b + 1) + EULER) - F.log(a) - F.log(b)

    def _family_cdf(self, value: Any) -> Any:
        return -F.expm1(xlog1py(self.concentration0, -F.pow(value, self.concentration1)))

    def _family_icdf(self, p: Any) -> Any:
        return F.pow(-F.expm1(F.log1p(-p) / self.concentration0), 1 / self.concentration1)

    def _moment(self, order: int) -> Any:
        b, x = self.concentration0, 1 + order / self.concentration1
        return F.exp(F.log(b) + F.lgamma(x) + F.lgamma(b) - F.lgamma(x + b))

    def _family_mean(self) -> Any:
        return self._moment(1)

    def _family_mode(self) -> Any:
        a, b = self.concentration1, self.concentration0
        inside = F.logical_and(F.logical_and(a >= 1, b >= 1), a * b > 1)
        base = F.where(inside, (a - 1) / F.where(inside, a * b - 1, 1), math.nan)
        return F.pow(base, 1 / a)

    def _family_variance(self) -> Any:
        return self._moment(2) - F.square(self._moment(1))


class ContinuousBernoulli(Odds, ExponentialFamily):
    """Densities proportional to ``p^x (1 - p)^(1 - x)``.

    Parameters
    ----------
    probs, logits : p, or the logarithm of its odds; one of them.
    lims : between them, series in p - 1/2 take the place of formulas that divide by 1 - 2 p.

    References
    ----------
    G. Loaiza-Ganem, J. P. Cunningham: The continuous Bernoulli. NeurIPS 2019.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, probs: Any = None, logits: Any = None, lims: Any = (0.499, 0.501), validate_args: bool | None = None
    ) -> None:
        given = one_of(probs, logits)
        self._lims = tuple(lims)
        self._hold(validate_args, **given)

    def _cut(self, formula: Any, series: Any) -> Any:
        """formula(p) away from 1/2, series(p - 1/2) near."""
        p = clamp_probs(self.probs)
        outside = F.logical_or(p <= self._lims[0], p > self._lims[1])
        return F.where(outside, formula(F.where(outside, p, self._lims[0])), series(p - 0.5))

    def _log_norm(self) -> Any:
        return self._cut(
            lambda p: F.log(F.abs((F.log1p(-p) - F.log(p)) / (1 - 2 * p))),
            lambda x: math.log(2) + (4 / 3 + 104 / 45 * x * x) * x * x,
        )

    def _family_draw(self, shape: Shape) -> Any:
        return self._family_icdf(lift(draw("rand", shape, self._given.dtype, None)))

    def _family_log_prob(self, value: Any) -> Any:
        logits = self.logits
        return value * F.logsigmoid(logits) + (1 - value) * F.logsigmoid(-logits) + self._log_norm()

    def _family_entropy(self) -> Any:
        p = clamp_probs(self.probs)
        zero, one = F.log1p(-p), F.log(p)
        return self.mean * (zero - one) - self._log_norm() - zero

    def _family_cdf(self, value: Any) -> Any:
        inner = self._cut(
            lambda p: (F.pow(p, value) * F.pow(1 - p, 1 - value) + p - 1) / (2 * p - 1), lambda x: value + x * 0
        )
        return F.where(value <= 0, 0.0, F.where(value >= 1, 1.0, inner))

    def _family_icdf(self, u: Any) -> Any:
        return self._cut(
            lambda p: (F.log1p(-p + u * (2 * p - 1)) - F.log1p(-p)) / (F.log(p) - F.log1p(-p)), lambda x: u + x * 0
        )

    def _family_mean(self) -> Any:
        return self._cut(
            lambda p: p / (2 * p - 1) + 1 / (F.log1p(-p) - F.log(p)), lambda x: 0.5 + (1 / 3 + 16 / 45 * x * x) * x
        )

    def _family_variance(self) -> Any:
        return self._cut(
            lambda p: p * (p - 1) / F.square(1 - 2 * p) + 1 / F.square(F.log1p(-p) - F.log(p)),
            lambda x: 1 / 12 - (1 / 15 - 128 / 945 * x * x) * x * x,
        )


class LogitRelaxedBernoulli(Odds, Distribution):
    """Logits of relaxed Bernoulli draws: ``(logit(p) + logit(u)) / temperature``.

    Parameters
    ----------
    temperature : the lower, the farther from 0.
    probs, logits : p, or the logarithm of its odds; one of them.

    References
    ----------
    C. J. Maddison, A. Mnih, Y. W. Teh: The concrete distribution. ICLR 2017.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        self._hold(validate_args, **one_of(probs, logits))

    def _family_draw(self, shape: Shape) -> Any:
        u = clamp_probs(uniform(shape, self._given.dtype))
        return (F.log(u) - F.log1p(-u) + self.logits) / self.temperature

    def _family_log_prob(self, value: Any) -> Any:
        apart = self.logits - value * self.temperature
        scale = F.log(self.temperature + F.zeros_like(self._given))
        return scale + F.logsigmoid(apart) + F.logsigmoid(-apart)


class RelaxedBernoulli(TransformedDistribution):
    """Bernoulli draws relaxed to numbers between 0 and 1, with gradients.

    Parameters
    ----------
    temperature : the lower, the nearer to 0 and 1.
    probs, logits : the probability, or the logarithm of its odds; one of them.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(LogitRelaxedBernoulli(temperature, probs, logits, validate_args), SigmoidTransform())

    temperature = property(lambda self: self.base_dist.temperature)
    probs = property(lambda self: self.base_dist.probs)
    logits = property(lambda self: self.base_dist.logits)
