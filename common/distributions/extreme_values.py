"""Families of extremes: of what exceeds a threshold, and of least values."""

from __future__ import annotations

import math
from typing import Any

from common.distributions import constraints
from common.distributions.distribution import Distribution, Shape, uniform
from common.distributions.real_line import EULER
from common.ops import functional as F


class Weibull(Distribution):
    """Weibull distributions.

    Parameters
    ----------
    scale, concentration : scale, and the power.
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self._hold(validate_args, scale=scale, concentration=concentration)

    def _family_draw(self, shape: Shape) -> Any:
        return self._family_icdf(uniform(shape, self.scale.dtype))

    def _family_log_prob(self, value: Any) -> Any:
        z, k = value / self.scale, self.concentration
        return F.log(k / self.scale) + (k - 1) * F.log(z) - F.pow(z, k)

    def _family_entropy(self) -> Any:
        k = self.concentration
        return EULER * (1 - 1 / k) + F.log(self.scale / k) + 1

    def _family_cdf(self, value: Any) -> Any:
        return -F.expm1(-F.pow(value / self.scale, self.concentration))

    def _family_icdf(self, p: Any) -> Any:
        return self.scale * F.pow(-F.log1p(-p), 1 / self.concentration)

    def _moment(self, order: int) -> Any:
        return F.exp(F.lgamma(1 + order / self.concentration))

    def _family_mean(self) -> Any:
        return self.scale * self._moment(1)

    def _family_mode(self) -> Any:
        k = F.where(self.concentration >= 1, self.concentration, math.nan)  # below 1 the density has no maximum
        return self.scale * F.pow((k - 1) / k, 1 / k)

    def _family_variance(self) -> Any:
        return F.square(self.scale) * (self._moment(2) - F.square(self._moment(1)))


class Pareto(Distribution):
    """Pareto distributions of the first kind.

    Parameters
    ----------
    scale, alpha : the least value, and the power with which the tail falls.
    """

    arg_constraints = {"scale": constraints.positive, "alpha": constraints.positive}
    has_rsample = True

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self._hold(validate_args, scale=scale, alpha=alpha)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """From the least value on."""
        return constraints.greater_than_eq(self.scale)

    def _family_draw(self, shape: Shape) -> Any:
        return self._family_icdf(uniform(shape, self.scale.dtype))

    def _family_log_prob(self, value: Any) -> Any:
        return F.log(self.alpha) + self.alpha * F.log(self.scale) - (self.alpha + 1) * F.log(value)

    def _family_entropy(self) -> Any:
        return F.log(self.scale / self.alpha) + 1 + 1 / self.alpha

    def _family_cdf(self, value: Any) -> Any:
        return 1 - F.pow(self.scale / value, self.alpha)

    def _family_icdf(self, p: Any) -> Any:
        return self.scale * F.exp(-F.log1p(-p) / self.alpha)

    def _family_mean(self) -> Any:
        a = F.clamp(self.alpha, min=1)
        return a * self.scale / (a - 1)

    def _family_mode(self) -> Any:
        return self.scale

    def _family_variance(self) -> Any:
        a = F.clamp(self.alpha, min=2)
        return F.square(self.scale) * a / (F.square(a - 1) * (a - 2))


class GeneralizedPareto(Distribution):
    """Generalized Pareto distributions, of what exceeds a threshold.

    Parameters
    ----------
    loc, scale, concentration : the threshold, the scale, and the power with which the tail falls: 0 is the exponential
        distribution, below 0 the support ends at ``loc - scale / concentration``.

    References
    ----------
    Pickands, Statistical inference using extreme order statistics, 1975.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self._hold(validate_args, loc=loc, scale=scale, concentration=concentration)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """From the threshold on."""
        _, bent, safe = self._bend()
        ends = F.logical_and(bent, safe < 0)
        return constraints.interval(self.loc, F.where(ends, self.loc - self.scale / F.where(ends, safe, -1), math.inf))

    def _bend(self) -> tuple[Any, Any, Any]:
        """The concentration, whether it is not about 0, and 1 where it is."""
        c = self.concentration
        bent = F.abs(c) > 1e-8
        return c, bent, F.where(bent, c, 1)

    def _family_draw(self, shape: Shape) -> Any:
        return self._family_icdf(uniform(shape, self.scale.dtype))

    def _log_tail(self, value: Any) -> Any:
        """The logarithm of the share above a value."""
        z = (value - self.loc) / self.scale
        _, bent, safe = self._bend()
        return F.where(bent, -F.log1p(F.where(bent, safe * z, 0)) / safe, -z)

    def _family_log_prob(self, value: Any) -> Any:
        c, bent, _ = self._bend()
        return (1 + F.where(bent, c, 0)) * self._log_tail(value) - F.log(self.scale)

    def log_survival_function(self, value: Any) -> Any:
        """The logarithm of the probability of more than a value.

        Parameters
        ----------
        value : (..., batch).
        """
        return self._log_tail(self._validate_sample(value))

    def log_cdf(self, value: Any) -> Any:
        """The logarithm of the probability of at most a value.

        Parameters
        ----------
        value : (..., batch).
        """
        return F.log1p(-F.exp(self.log_survival_function(value)))

    def _family_entropy(self) -> Any:
        return F.log(self.scale) + self.concentration + 1

    def _family_cdf(self, value: Any) -> Any:
        return -F.expm1(self._log_tail(value))

    def _family_icdf(self, p: Any) -> Any:
        _, bent, safe = self._bend()
        tail = F.log1p(-p)
        return self.loc + self.scale * F.where(bent, F.expm1(-safe * tail) / safe, -tail)

    def _family_mean(self) -> Any:
        c = self.concentration
        return F.where(c < 1, self.loc + self.scale / (1 - F.where(c < 1, c, 0)), math.nan)

    def _family_mode(self) -> Any:
        return self.loc

    def _family_variance(self) -> Any:
        narrow = self.concentration < 0.5
        c = F.where(narrow, self.concentration, 0)
        return F.where(narrow, F.square(self.scale / (1 - c)) / (1 - 2 * c), math.nan)
