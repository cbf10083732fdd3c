"""Changes of variable of single numbers."""

from __future__ import annotations

import math
from typing import Any

from common.core.errors import ArgumentError
from common.core.int_arguments import members
from common.distributions import constraints
from common.distributions.distribution import Distribution, limits
from common.distributions.transforms import Transform, sum_rightmost
from common.ops import functional as F
from common.tensor.base import TensorBase


class Alike(Transform):
    """Functions without parameters: all of a class are equal."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)


class ExpTransform(Alike):
    """``exp(x)``."""

    codomain = constraints.positive
    bijective, _sign = True, 1

    def _call(self, x: Any) -> Any:
        return F.exp(x)

    def _inverse(self, y: Any) -> Any:
        return F.log(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """That is x."""
        return x


class SigmoidTransform(Alike):
    """``1 / (1 + exp(-x))``."""

    codomain = constraints.unit_interval
    bijective, _sign = True, 1

    def _call(self, x: Any) -> Any:
        return clipped(F.sigmoid(x))

    def _inverse(self, y: Any) -> Any:
        y = clipped(y)
        return F.log(y) - F.log1p(-y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """``-softplus(-x) - softplus(x)``."""
        return F.logsigmoid(x) + F.logsigmoid(-x)


def clipped(p: Any) -> Any:
    """Probabilities away from 0 and 1."""
    return F.clamp(p, min=float(limits(p).tiny), max=1 - float(limits(p).eps))


class SoftplusTransform(Alike):
    """``log(1 + exp(x))``."""

    codomain = constraints.positive
    bijective, _sign = True, 1

    def _call(self, x: Any) -> Any:
        return F.softplus(x)

    def _inverse(self, y: Any) -> Any:
        return F.log(-F.expm1(-y)) + y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """``-softplus(-x)``."""
        return F.logsigmoid(x)


class TanhTransform(Alike):
    """``tanh(x)``."""

    codomain = constraints.interval(-1.0, 1.0)
    bijective, _sign = True, 1

    def _call(self, x: Any) -> Any:
        return F.tanh(x)

    def _inverse(self, y: Any) -> Any:
        return F.atanh(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """``log(1 - tanh(x)^2)``, also where tanh rounds to 1."""
        return 2 * (math.log(2) - x - F.softplus(-2 * x))


class AbsTransform(Alike):
    """``abs(x)``, of which two operands have one result; its inverse gives the positive one."""

    codomain = constraints.positive

    def _call(self, x: Any) -> Any:
        return F.abs(x)

    def _inverse(self, y: Any) -> Any:
        return y


class PowerTransform(Transform):
    """``x ** exponent``, of positive numbers.

    Parameters
    ----------
    exponent : a number or tensor.
    """

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.exponent = exponent

    sign = property(lambda self: F.sign(self.exponent) if isinstance(self.exponent, TensorBase)
                    else math.copysign(1, self.exponent))  # fmt: skip

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and _same(self.exponent, other.exponent)

    def _call(self, x: Any) -> Any:
        return F.pow(x, self.exponent)

    def _inverse(self, y: Any) -> Any:
        return F.pow(y, 1 / self.exponent)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """``log abs(exponent y / x)``."""
        return F.log(F.abs(self.exponent * y / x))

    def forward_shape(self, shape: Any) -> Any:
        """The shape of a result."""
        return _broadcast(shape, self.exponent)

    inverse_shape = forward_shape


def _broadcast(shape: Any, *others: Any) -> Any:
    from common.core.shapes import broadcast_shapes

    shape = tuple(members(shape, "transform", "shape"))
    return broadcast_shapes(shape, *(getattr(x, "shape", ()) for x in others), op="transform")


def _same(a: Any, b: Any) -> bool:
    return a is b or bool(F.all(F.eq(a, b)) if isinstance(a, TensorBase) or isinstance(b, TensorBase) else a == b)


class AffineTransform(Transform):
    """``loc + scale x``.

    Parameters
    ----------
    loc, scale : numbers or tensors.
    event_dim : how many last dimensions are one operand.
    """

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    @property
    def event_dim(self) -> int:
        """How many last dimensions are one operand."""
        return self._event_dim

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        """Constraint of operands."""
        n = self._event_dim
        return constraints.independent(constraints.real, n) if n else constraints.real

    codomain = domain

    sign = property(lambda self: F.sign(self.scale) if isinstance(self.scale, TensorBase)
                    else (self.scale > 0) - (self.scale < 0))  # fmt: skip

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AffineTransform) and _same(self.loc, other.loc) and _same(self.scale, other.scale)

    def _call(self, x: Any) -> Any:
        return self.loc + self.scale * x

    def _inverse(self, y: Any) -> Any:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """``log abs(scale)``, summed over the dimensions of an operand."""
        if isinstance(self.scale, TensorBase):
            each = F.log(F.abs(self.scale)) + F.zeros_like(x)
        else:
            each = F.full_like(x, math.log(abs(self.scale)))
        return sum_rightmost(each, self._event_dim)

    def forward_shape(self, shape: Any) -> Any:
        """The shape of a result."""
        return _broadcast(shape, self.loc, self.scale)

    inverse_shape = forward_shape


class CumulativeDistributionTransform(Transform):
    """The cumulative distribution function of a distribution of numbers.

    Parameters
    ----------
    distribution : with ``cdf``, ``icdf`` and ``log_prob``.
    """

    codomain = constraints.unit_interval
    bijective, _sign = True, 1

    def __init__(self, distribution: Distribution, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        if len(distribution.event_shape):
            raise ArgumentError("CumulativeDistributionTransform needs a distribution of numbers, without event_shape")
        self.distribution = distribution

    domain = property(lambda self: self.distribution.support)

    def _call(self, x: Any) -> Any:
        return self.distribution.cdf(x)

    def _inverse(self, y: Any) -> Any:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The logarithm of the density."""
        return self.distribution.log_prob(x)
