"""Families on the real line, on its positive half folded, and on the circle."""

from __future__ import annotations

import math
from typing import Any

from common.core.dtypes import float64
from common.core.errors import ArgumentError
from common.distributions import constraints
from common.distributions.distribution import Distribution, ExponentialFamily, Shape, every, known, limits
from common.distributions.distribution import gamma as gamma_draw
from common.distributions.distribution import normal as normal_draw
from common.distributions.distribution import uniform as uniform_draw
from common.ops import functional as F
from common.ops.special.by_scipy import i0e_, i1e_
from common.random.counts import by_quantile
from common.random.generator import draw
from common.tensor.create import lift

EULER = 0.5772156649015329
LOG_ROOT_2_PI = math.log(math.sqrt(2 * math.pi))


class _LocationScale(Distribution):
    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self._hold(validate_args, loc=loc, scale=scale)

    def _standard(self, value: Any) -> Any:
        return (value - self.loc) / self.scale

    def _family_mean(self) -> Any:
        return self.loc

    def _family_mode(self) -> Any:
        return self.loc


class Normal(_LocationScale, ExponentialFamily):
    """Normal distributions.

    Parameters
    ----------
    loc, scale : mean and standard deviation.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.distributions.Normal(0.0, 1.0).log_prob(tw.tensor(0.0))
    tensor(-0.9189)
    """

    def _family_draw(self, shape: Shape) -> Any:
        return self.loc + normal_draw(shape, self.loc.dtype) * self.scale

    def _family_log_prob(self, value: Any) -> Any:
        z = self._standard(value)
        return z * z * -0.5 - F.log(self.scale) - LOG_ROOT_2_PI

    def _family_entropy(self) -> Any:
        return 0.5 + 0.5 * math.log(2 * math.pi) + F.log(self.scale)

    def _family_cdf(self, value: Any) -> Any:
        return 0.5 * (1 + F.erf(self._standard(value) / math.sqrt(2)))

    def _family_icdf(self, p: Any) -> Any:
        return self.loc + self.scale * F.erfinv(2 * p - 1) * math.sqrt(2)

    def _family_variance(self) -> Any:
        return self.scale * self.scale


class Laplace(_LocationScale):
    """Laplace distributions.

    Parameters
    ----------
    loc, scale : location and scale.
    """

    def _family_draw(self, shape: Shape) -> Any:
        u = lift(draw("rand", shape, self.loc.dtype, None)) - 0.5
        return self.loc - self.scale * F.sign(u) * F.log(F.clamp(1 - 2 * F.abs(u), min=float(limits(u).tiny)))

    def _family_log_prob(self, value: Any) -> Any:
        return -F.log(2 * self.scale) - F.abs(self._standard(value))

    def _family_entropy(self) -> Any:
        return 1 + F.log(2 * self.scale)

    def _family_cdf(self, value: Any) -> Any:
        z = self._standard(value)
        return 0.5 - 0.5 * F.sign(z) * F.expm1(-F.abs(z))

    def _family_icdf(self, p: Any) -> Any:
        return self.loc - self.scale * F.sign(p - 0.5) * F.log1p(-2 * F.abs(p - 0.5))

    def _family_variance(self) -> Any:
        return 2 * self.scale * self.scale


class Cauchy(_LocationScale):
    """Cauchy distributions, which have no mean.

    Parameters
    ----------
    loc, scale : the median, and half the width at half the height.
    """

    def _family_draw(self, shape: Shape) -> Any:
        return self._family_icdf(uniform_draw(shape, self.loc.dtype))

    def _family_log_prob(self, value: Any) -> Any:
        return -math.log(math.pi) - F.log(self.scale) - F.log1p(F.square(self._standard(value)))

    def _family_entropy(self) -> Any:
        return math.log(4 * math.pi) + F.log(self.scale)

    def _family_cdf(self, value: Any) -> Any:
        return F.atan(self._standard(value)) / math.pi + 0.5

    def _family_icdf(self, p: Any) -> Any:
        return F.tan(math.pi * (p - 0.5)) * self.scale + self.loc

    def _family_mean(self) -> Any:
        return F.full_like(self.loc, math.nan)

    def _family_variance(self) -> Any:
        return F.full_like(self.loc, math.inf)


class Gumbel(_LocationScale):
    """Gumbel distributions, those of maxima.

    Parameters
    ----------
    loc, scale : the mode, and the scale.
    """

    def _family_draw(self, shape: Shape) -> Any:
        return self._family_icdf(uniform_draw(shape, self.loc.dtype))

    def _family_log_prob(self, value: Any) -> Any:
        y = (self.loc - value) / self.scale
        return y - F.exp(y) - F.log(self.scale)

    def _family_entropy(self) -> Any:
        return F.log(self.scale) + (1 + EULER)

    def _family_cdf(self, value: Any) -> Any:
        return F.exp(-F.exp((self.loc - value) / self.scale))

    def _family_icdf(self, p: Any) -> Any:
        return self.loc - self.scale * F.log(-F.log(p))

    def _family_mean(self) -> Any:
        return self.loc + self.scale * EULER

    def _family_variance(self) -> Any:
        return F.square(self.scale) * (math.pi**2 / 6)


class StudentT(Distribution):
    """Student's t distributions.

    Parameters
    ----------
    df : degrees of freedom.
    loc, scale : location and scale.
    """

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self._hold(validate_args, df=df, loc=loc, scale=scale)

    def _family_draw(self, shape: Shape) -> Any:
        half = self.df / 2
        z = normal_draw(shape, self.df.dtype)
        return self.loc + self.scale * z * F.sqrt(half / gamma_draw(shape, half))

    def _family_log_prob(self, value: Any) -> Any:
        half, over = self.df / 2, (self.df + 1) / 2
        scale = F.log(self.scale) + 0.5 * F.log(self.df) + 0.5 * math.log(math.pi) + F.lgamma(half) - F.lgamma(over)
        return -over * F.log1p(F.square((value - self.loc) / self.scale) / self.df) - scale

    def _family_entropy(self) -> Any:
        half, over = self.df / 2, (self.df + 1) / 2
        beta = F.lgamma(half) + 0.5 * math.log(math.pi) - F.lgamma(over)
        return F.log(self.scale) + over * (F.digamma(over) - F.digamma(half)) + 0.5 * F.log(self.df) + beta

    def _family_mean(self) -> Any:
        return F.where(self.df <= 1, math.nan, self.loc)

    def _family_mode(self) -> Any:
        return self.loc

    def _family_variance(self) -> Any:
        wide = self.df > 2
        inner = F.square(self.scale) * self.df / F.where(wide, self.df - 2, 1)
        return F.where(wide, inner, F.where(self.df > 1, F.full_like(inner, math.inf), math.nan))


class Uniform(Distribution):
    """Uniform distributions.

    Parameters
    ----------
    low, high : the ends; `high` is not drawn.
    """

    arg_constraints = {
        "low": constraints.dependent(is_discrete=False, event_dim=0),
        "high": constraints.dependent(is_discrete=False, event_dim=0),
    }
    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self._hold(validate_args, low=low, high=high)
        if self._validate_args and known(self.low) and known(self.high) and not every(self.low < self.high):
            raise ArgumentError("Uniform is not defined when low>= high")

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """From low to high."""
        return constraints.interval(self.low, self.high)

    def _family_draw(self, shape: Shape) -> Any:
        return self.low + lift(draw("rand", shape, self.low.dtype, None)) * (self.high - self.low)

    def _family_log_prob(self, value: Any) -> Any:
        inside = F.logical_and(value >= self.low, value < self.high)
        return F.where(inside, -F.log(self.high - self.low), -math.inf)

    def _family_entropy(self) -> Any:
        return F.log(self.high - self.low)

    def _family_cdf(self, value: Any) -> Any:
        return F.clamp((value - self.low) / (self.high - self.low), min=0, max=1)

    def _family_icdf(self, p: Any) -> Any:
        return p * (self.high - self.low) + self.low

    def _family_mean(self) -> Any:
        return (self.high + self.low) / 2

    def _family_mode(self) -> Any:
        return F.full_like(self.high, math.nan)

    def _family_variance(self) -> Any:
        return F.square(self.high - self.low) / 12


class _Folded(Distribution):
    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        self._hold(validate_args, scale=scale)

    def _family_mode(self) -> Any:
        return F.zeros_like(self.scale)

    def _of_positive(self, value: Any, density: Any) -> Any:
        return F.where(value >= 0, density, -math.inf)


class HalfNormal(_Folded):
    """Magnitudes of normal numbers of mean 0.

    Parameters
    ----------
    scale : their standard deviation before.

    Attributes
    ----------
    base_dist : the normal distribution itself.
    """

    base_dist = property(lambda self: Normal(F.zeros_like(self.scale), self.scale))

    def _family_draw(self, shape: Shape) -> Any:
        return F.abs(normal_draw(shape, self.scale.dtype) * self.scale)

    def _family_log_prob(self, value: Any) -> Any:
        z = value / self.scale
        return self._of_positive(value, z * z * -0.5 - F.log(self.scale) + (math.log(2) - LOG_ROOT_2_PI))

    def _family_entropy(self) -> Any:
        return F.log(self.scale) + 0.5 * math.log(math.pi * math.e / 2)

    def _family_cdf(self, value: Any) -> Any:
        return F.erf(value / self.scale / math.sqrt(2))

    def _family_icdf(self, p: Any) -> Any:
        return self.scale * F.erfinv(p) * math.sqrt(2)

    def _family_mean(self) -> Any:
        return self.scale * math.sqrt(2 / math.pi)

    def _family_variance(self) -> Any:
        return F.square(self.scale) * (1 - 2 / math.pi)


class HalfCauchy(_Folded):
    """Magnitudes of Cauchy numbers of median 0.

    Parameters
    ----------
    scale : the median.

    Attributes
    ----------
    base_dist : the Cauchy distribution itself.
    """

    base_dist = property(lambda self: Cauchy(F.zeros_like(self.scale), self.scale))

    def _family_draw(self, shape: Shape) -> Any:
        return F.abs(F.tan(math.pi * (uniform_draw(shape, self.scale.dtype) - 0.5)) * self.scale)

    def _family_log_prob(self, value: Any) -> Any:
        density = math.log(2 / math.pi) - F.log(self.scale) - F.log1p(F.square(value / self.scale))
        return self._of_positive(value, density)

    def _family_entropy(self) -> Any:
        return math.log(2 * math.pi) + F.log(self.scale)

    def _family_cdf(self, value: Any) -> Any:
        return F.atan(value / self.scale) * (2 / math.pi)

    def _family_icdf(self, p: Any) -> Any:
        return F.tan(p * (math.pi / 2)) * self.scale

    def _family_mean(self) -> Any:
        return F.full_like(self.scale, math.inf)

    def _family_variance(self) -> Any:
        return F.full_like(self.scale, math.inf)


class VonMises(Distribution):
    """Angles around a direction.

    Parameters
    ----------
    loc : the direction, in radians.
    concentration : the larger, the nearer; its draws have no gradient.

    References
    ----------
    K. V. Mardia, P. E. Jupp: Directional statistics. Wiley, 2000.
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self._hold(validate_args, loc=loc, concentration=concentration)

    def _family_draw(self, shape: Shape) -> Any:
        angle = by_quantile("von_mises_draw", shape, self.concentration.to(float64)) + self.loc.to(float64)
        return (F.remainder(angle + math.pi, 2 * math.pi) - math.pi).to(self.loc.dtype)

    def _family_log_prob(self, value: Any) -> Any:
        k = self.concentration
        return k * (F.cos(value - self.loc) - 1) - math.log(2 * math.pi) - F.log(i0e_(k))

    def _family_mean(self) -> Any:
        return self.loc

    def _family_mode(self) -> Any:
        return self.loc

    def _family_variance(self) -> Any:
        return 1 - i1e_(self.concentration) / i0e_(self.concentration)
