"""Families on the positive half of the real line."""

from __future__ import annotations

import math
from typing import Any

from common.distributions import constraints
from common.distributions.distribution import Distribution, ExponentialFamily, Shape
from common.distributions.distribution import gamma as gamma_draw
from common.distributions.real_line import Normal
from common.distributions.scalar_transforms import ExpTransform
from common.distributions.transformed import TransformedDistribution
from common.ops import functional as F
from common.ops.random import quantile_draws
from common.random.generator import draw
from common.tensor.create import lift


class Exponential(ExponentialFamily):
    """Exponential distributions.

    Parameters
    ----------
    rate : the inverse of the mean.
    """

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        self._hold(validate_args, rate=rate)

    def _family_draw(self, shape: Shape) -> Any:
        return self._family_icdf(lift(draw("rand", shape, self.rate.dtype, None)))

    def _family_log_prob(self, value: Any) -> Any:
        return F.log(self.rate) - self.rate * value

    def _family_entropy(self) -> Any:
        return 1 - F.log(self.rate)

    def _family_cdf(self, value: Any) -> Any:
        return -F.expm1(-self.rate * value)

    def _family_icdf(self, p: Any) -> Any:
        return -F.log1p(-p) / self.rate

    def _family_mean(self) -> Any:
        return 1 / self.rate

    def _family_mode(self) -> Any:
        return F.zeros_like(self.rate)

    def _family_variance(self) -> Any:
        return 1 / F.square(self.rate)


class Gamma(ExponentialFamily):
    """Gamma distributions; gradients of draws are those of the quantile.

    Parameters
    ----------
    concentration, rate : shape, and the inverse of the scale.
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _takes_numbers = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self._hold(validate_args, concentration=concentration, rate=rate)

    def _family_draw(self, shape: Shape) -> Any:
        return gamma_draw(shape, self.concentration) / self.rate

    def _family_log_prob(self, value: Any) -> Any:
        a, rate = self.concentration, self.rate
        return F.xlogy(a, rate) + F.xlogy(a - 1, value) - rate * value - F.lgamma(a)

    def _family_entropy(self) -> Any:
        a = self.concentration
        return a - F.log(self.rate) + F.lgamma(a) + (1 - a) * F.digamma(a)

    def _family_cdf(self, value: Any) -> Any:
        return F.igamma(*F.broadcast_tensors(self.concentration, self.rate * value))

    def _family_icdf(self, p: Any) -> Any:
        return quantile_draws.gamma_quantile(*F.broadcast_tensors(self.concentration, p)) / self.rate

    def _family_mean(self) -> Any:
        return self.concentration / self.rate

    def _family_mode(self) -> Any:
        return F.clamp((self.concentration - 1) / self.rate, min=0)

    def _family_variance(self) -> Any:
        return self.concentration / F.square(self.rate)


class Chi2(Gamma):
    """Sums of squares of normal numbers.

    Parameters
    ----------
    df : how many.
    """

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        self._hold(validate_args, df=df)

    concentration = property(lambda self: self.df / 2)
    rate = property(lambda self: F.full_like(self.df, 0.5))


class InverseGamma(Distribution):
    """Inverses of gamma numbers.

    Parameters
    ----------
    concentration, rate : those of the gamma distribution.
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self._hold(validate_args, concentration=concentration, rate=rate)

    def _family_draw(self, shape: Shape) -> Any:
        return self.rate / gamma_draw(shape, self.concentration)

    def _family_log_prob(self, value: Any) -> Any:
        a, rate = self.concentration, self.rate
        return a * F.log(rate) - F.lgamma(a) - (a + 1) * F.log(value) - rate / value

    def _family_entropy(self) -> Any:
        a = self.concentration
        return a + F.log(self.rate) + F.lgamma(a) - (1 + a) * F.digamma(a)

    def _family_cdf(self, value: Any) -> Any:
        return F.igammac(*F.broadcast_tensors(self.concentration, self.rate / value))

    def _family_mean(self) -> Any:
        a = self.concentration
        return F.where(a > 1, self.rate / F.where(a > 1, a - 1, 1), math.inf)

    def _family_mode(self) -> Any:
        return self.rate / (self.concentration + 1)

    def _family_variance(self) -> Any:
        a, narrow = self.concentration, self.concentration > 2
        a = F.where(narrow, a, 3)
        return F.where(narrow, F.square(self.rate / (a - 1)) / (a - 2), math.inf)


class FisherSnedecor(Distribution):
    """Quotients of two means of squares of normal numbers.

    Parameters
    ----------
    df1, df2 : how many squares above, and below.
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self._hold(validate_args, df1=df1, df2=df2)

    def _family_draw(self, shape: Shape) -> Any:
        above, below = gamma_draw(shape, self.df1 / 2), gamma_draw(shape, self.df2 / 2)
        return (above / self.df1) / (below / self.df2)

    def _family_log_prob(self, value: Any) -> Any:
        a, b, ratio = self.df1 / 2, self.df2 / 2, self.df1 / self.df2
        scale = F.lgamma(a + b) - F.lgamma(a) - F.lgamma(b) + a * F.log(ratio)
        return scale + (a - 1) * F.log(value) - (a + b) * F.log1p(ratio * value)

    def _family_mean(self) -> Any:
        df = F.where(self.df2 > 2, self.df2, math.nan)
        return df / (df - 2)

    def _family_mode(self) -> Any:
        df = F.where(self.df1 > 2, self.df1, math.nan)
        return (df - 2) / df * self.df2 / (self.df2 + 2)

    def _family_variance(self) -> Any:
        df = F.where(self.df2 > 4, self.df2, math.nan)
        return 2 * F.square(df) * (self.df1 + df - 2) / (self.df1 * F.square(df - 2) * (df - 4))


class LogNormal(TransformedDistribution):
    """Exponentials of normal numbers.

    Parameters
    ----------
    loc, scale : mean and standard deviation of the logarithm.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args), [ExpTransform()], validate_args)

    loc = property(lambda self: self.base_dist.loc)
    scale = property(lambda self: self.base_dist.scale)

    def _family_entropy(self) -> Any:
        return self.base_dist.entropy() + self.loc

    def _family_mean(self) -> Any:
        return F.exp(self.loc + F.square(self.scale) / 2)

    def _family_mode(self) -> Any:
        return F.exp(self.loc - F.square(self.scale))

    def _family_variance(self) -> Any:
        square = F.square(self.scale)
        return F.expm1(square) * F.exp(2 * self.loc + square)
