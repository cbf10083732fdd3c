"""Families of vectors whose elements sum to 1."""

from __future__ import annotations

import math
from typing import Any

from common.core.dtypes import float64
from common.core.errors import ArgumentError
from common.distributions import constraints
from common.distributions.categories import Categorical
from common.distributions.distribution import Distribution, ExponentialFamily, Shape, limits, one_dtype, uniform
from common.distributions.real_line import Normal
from common.distributions.scalar_transforms import ExpTransform
from common.distributions.transformed import TransformedDistribution
from common.distributions.vector_transforms import StickBreakingTransform
from common.ops import functional as F
from common.random.counts import by_quantile
from common.random.generator import draw
from common.tensor.create import lift


class Dirichlet(ExponentialFamily):
    """Dirichlet distributions; a draw breaks a stick by beta draws, whose gradients are those of the quantile.

    Parameters
    ----------
    concentration : (..., n), positive.

    Raises
    ------
    ArgumentError : a number.
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Any, validate_args: bool | None = None) -> None:
        (self.concentration,) = one_dtype(concentration)
        if self.concentration.ndim < 1:
            raise ArgumentError("`concentration` parameter must be at least one-dimensional.")
        super().__init__(self.concentration.shape[:-1], self.concentration.shape[-1:], validate_args)

    def _family_draw(self, shape: Shape) -> Any:
        a, shape = self.concentration.to(float64), (*shape[:-1], shape[-1] - 1)
        first, rest = a[..., :-1], F.flip(F.cumsum(F.flip(a, (-1,)), -1), (-1,))[..., 1:]
        u = lift(draw("rand", shape, float64, None))
        z = by_quantile("beta_quantile", shape, first, rest, u=u)
        small = by_quantile("beta_quantile", shape, rest, first, u=1 - u)  # 1 - z has lost its digits where z is near 1
        left = F.pad(F.cumprod(F.where(z > 0.5, small, 1 - z), -1), (1, 0), value=1.0)
        y = (F.pad(z, (0, 1), value=1.0) * left).to(self.concentration.dtype)
        return F.clamp(y, min=float(limits(y).tiny))

    def _total(self) -> Any:
        return F.sum(self.concentration, -1)

    def _log_scale(self) -> Any:
        return F.sum(F.lgamma(self.concentration), -1) - F.lgamma(self._total())

    def _family_log_prob(self, value: Any) -> Any:
        return F.sum(F.xlogy(self.concentration - 1, value), -1) - self._log_scale()

    def _family_entropy(self) -> Any:
        a, total = self.concentration, self._total()
        inner = F.sum((a - 1) * F.digamma(a), -1)
        return self._log_scale() + (total - a.shape[-1]) * F.digamma(total) - inner

    def _family_mean(self) -> Any:
        return self.concentration / F.sum(self.concentration, -1, True)

    def _family_mode(self) -> Any:
        a = self.concentration
        above = F.clamp(a - 1, min=0)
        inner = above / F.sum(above, -1, True)
        corner = F.one_hot(F.argmax(a, -1), a.shape[-1]).to(a.dtype)
        return F.where(F.all(a < 1, -1, True), corner, inner)

    def _family_variance(self) -> Any:
        a, total = self.concentration, F.sum(self.concentration, -1, True)
        return a * (total - a) / (F.square(total) * (total + 1))


class ExpRelaxedCategorical(Distribution):
    """Logarithms of relaxed draws of classes.

    Parameters
    ----------
    temperature : the lower, the nearer to one class.
    probs, logits : (..., n), as of `Categorical`.

    References
    ----------
    C. J. Maddison, A. Mnih, Y. W. Teh: The concrete distribution. ICLR 2017.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.temperature, self._categorical = temperature, Categorical(probs, logits, validate_args)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args)

    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    param_shape = property(lambda self: self._categorical.param_shape)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distributions for a larger batch."""
        new = super().expand(batch_shape, _instance)
        new._categorical = self._categorical.expand(batch_shape)
        return new

    def _family_draw(self, shape: Shape) -> Any:
        scores = (self.logits - F.log(-F.log(uniform(shape, self.logits.dtype)))) / self.temperature
        return scores - F.logsumexp(scores, -1, True)

    def _family_log_prob(self, value: Any) -> Any:
        n = self.event_shape[0]
        score = self.logits - value * self.temperature
        score = F.sum(score - F.logsumexp(score, -1, True), -1)
        return score + math.lgamma(n) + (n - 1) * F.log(self.temperature + F.zeros_like(score))


class RelaxedOneHotCategorical(TransformedDistribution):
    """Classes relaxed to points of the simplex, with gradients.

    Parameters
    ----------
    temperature : the lower, the nearer to the corners.
    probs, logits : (..., n), as of `Categorical`.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(ExpRelaxedCategorical(temperature, probs, logits, validate_args), ExpTransform())

    temperature = property(lambda self: self.base_dist.temperature)
    probs = property(lambda self: self.base_dist.probs)
    logits = property(lambda self: self.base_dist.logits)


class LogisticNormal(TransformedDistribution):
    """Points of the simplex, made of normal numbers by breaking a stick.

    Parameters
    ----------
    loc, scale : (..., n), mean and standard deviation of the numbers; a point has one element more.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args)
        super().__init__(base if len(base.batch_shape) else base.expand((1,)), StickBreakingTransform())

    loc = property(lambda self: self.base_dist.base_dist.loc)
    scale = property(lambda self: self.base_dist.base_dist.scale)


def _sample_dirichlet(concentration: Any, generator: Any = None) -> Any:
    """A draw of each Dirichlet distribution, the shape of `concentration`; libraries call PyTorch's by this name."""
    if generator is not None:
        raise ArgumentError("_sample_dirichlet(): generator= is not taken: manual_seed is what distributions draw by")
    return Dirichlet(concentration).sample()
