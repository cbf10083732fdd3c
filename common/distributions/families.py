"""Families of distributions whose draws are functions of uniform or normal numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from common.core import mode
from common.core.dtypes import DEFAULT_FLOAT, promote
from common.core.errors import ArgumentError, NotDefinedError
from common.core.shapes import broadcast_shapes
from common.distributions import constraints
from common.ops import functional as F
from common.random.generator import draw
from common.tensor.base import TensorBase
from common.tensor.create import lift

Shape = tuple[Any, ...]
_TINY = {"float32": float(np.finfo(np.float32).tiny), "float64": float(np.finfo(np.float64).tiny)}


def parameters(*values: Any) -> list[Any]:
    """Numbers and tensors as tensors of one dtype and shape."""
    tensors = [x for x in values if isinstance(x, TensorBase)]
    dtype = tensors[0].dtype if tensors else DEFAULT_FLOAT
    for x in tensors[1:]:
        dtype = promote(dtype, x.dtype)
    dtype = dtype if dtype.kind == "f" else np.dtype(DEFAULT_FLOAT)
    made = [x.to(dtype) if isinstance(x, TensorBase) else lift(np.asarray(x, dtype)) for x in values]
    shape = broadcast_shapes(*(x.shape for x in made), op="distribution")
    return [x if tuple(x.shape) == tuple(shape) else x.expand(*shape) for x in made]


class Distribution:
    """The base of all; names and shapes are those of `torch.distributions`.

    Parameters
    ----------
    batch_shape : of independent distributions.
    event_shape : of one draw.
    validate_args : whether parameters and values are looked at, outside of traces.
    """

    arg_constraints: Mapping[str, constraints.Constraint] = {}
    support: constraints.Constraint = constraints.real
    has_rsample = False

    def __init__(self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None) -> None:
        self.batch_shape, self.event_shape = tuple(batch_shape), tuple(event_shape)
        self._validates = validate_args is not False
        if not self._validates or mode.current_trace() is not None:
            return
        for name, constraint in self.arg_constraints.items():
            value = self.__dict__.get(name)
            if value is not None and not bool(F.all(constraint.check(value))):
                raise ArgumentError(
                    f"Expected parameter {name} (Tensor of shape {tuple(value.shape)}) of distribution {self!r} to "
                    f"satisfy the constraint {constraint}, but found invalid values:\n{value}"
                )

    def _checked(self, value: Any) -> Any:
        value = value if isinstance(value, TensorBase) else lift(np.asarray(value, DEFAULT_FLOAT))
        if self._validates and mode.current_trace() is None and not bool(F.all(self.support.check(value))):
            raise ArgumentError(
                f"Expected value argument (Tensor of shape {tuple(value.shape)}) to be within the support "
                f"({self.support}) of the distribution {self!r}, but found invalid values:\n{value}"
            )
        return value

    def _extended(self, sample_shape: Any) -> Shape:
        return (*tuple(sample_shape), *self.batch_shape, *self.event_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw so that gradients reach the parameters.

        Raises
        ------
        NotDefinedError : always, for a family without such draws.
        """
        raise NotDefinedError(f"{type(self).__name__} has no rsample: its draws are not differentiable; use sample()")

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw, without a gradient."""
        with mode.no_grad():
            return self.rsample(sample_shape)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density, or of the probability, at a value."""
        raise NotDefinedError(f"{type(self).__name__} has no log_prob")

    @property
    def stddev(self) -> Any:
        """The standard deviation."""
        return F.sqrt(self.variance)  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        shown = ", ".join(f"{n}: {tuple(self.__dict__[n].shape)}" for n in self.arg_constraints if n in self.__dict__)
        return f"{type(self).__name__}({shown})"


class _LocationScale(Distribution):
    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = parameters(loc, scale)
        super().__init__(self.loc.shape, (), validate_args)

    def _standard(self, value: Any) -> Any:
        return (self._checked(value) - self.loc) / self.scale

    @property
    def mean(self) -> Any:
        """The mean."""
        return self.loc


class Normal(_LocationScale):
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

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw so that gradients reach the parameters."""
        return self.loc + lift(draw("randn", self._extended(sample_shape), self.loc.dtype, None)) * self.scale

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        z = self._standard(value)
        return z * z * -0.5 - F.log(self.scale) - math.log(math.sqrt(2 * math.pi))

    def entropy(self) -> Any:
        """The differential entropy."""
        return 0.5 + 0.5 * math.log(2 * math.pi) + F.log(self.scale)

    def cdf(self, value: Any) -> Any:
        """The probability of values up to this one."""
        return 0.5 * (1 + F.erf(self._standard(value) / math.sqrt(2)))

    def icdf(self, value: Any) -> Any:
        """The value up to which there is a probability."""
        return self.loc + self.scale * F.erfinv(2 * value - 1) * math.sqrt(2)

    @property
    def variance(self) -> Any:
        """The variance."""
        return self.scale * self.scale


class Laplace(_LocationScale):
    """Laplace distributions.

    Parameters
    ----------
    loc, scale : location and scale.
    """

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw so that gradients reach the parameters."""
        u = lift(draw("rand", self._extended(sample_shape), self.loc.dtype, None)) - 0.5
        return self.loc - self.scale * F.sign(u) * F.log(F.clamp(1 - 2 * F.abs(u), min=_TINY[u.dtype.name]))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        return -F.log(2 * self.scale) - F.abs(self._standard(value))

    def entropy(self) -> Any:
        """The differential entropy."""
        return 1 + F.log(2 * self.scale)

    def cdf(self, value: Any) -> Any:
        """The probability of values up to this one."""
        z = self._standard(value)
        return 0.5 - 0.5 * F.sign(z) * F.expm1(-F.abs(z))

    @property
    def variance(self) -> Any:
        """The variance."""
        return 2 * self.scale * self.scale


class Uniform(Distribution):
    """Uniform distributions.

    Parameters
    ----------
    low, high : the ends.
    """

    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = parameters(low, high)
        super().__init__(self.low.shape, (), validate_args)
        if self._validates and mode.current_trace() is None and not bool(F.all(self.low < self.high)):
            raise ArgumentError("Uniform is not defined when low>= high")

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw so that gradients reach the parameters."""
        u = lift(draw("rand", self._extended(sample_shape), self.low.dtype, None))
        return self.low + u * (self.high - self.low)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        inside = F.logical_and(value >= self.low, value < self.high)
        return F.where(inside, -F.log(self.high - self.low), -math.inf)

    def entropy(self) -> Any:
        """The differential entropy."""
        return F.log(self.high - self.low)

    def cdf(self, value: Any) -> Any:
        """The probability of values up to this one."""
        return F.clamp((value - self.low) / (self.high - self.low), min=0, max=1)

    @property
    def mean(self) -> Any:
        """The mean."""
        return (self.high + self.low) / 2

    @property
    def variance(self) -> Any:
        """The variance."""
        return F.square(self.high - self.low) / 12


class Exponential(Distribution):
    """Exponential distributions.

    Parameters
    ----------
    rate : the inverse of the mean.
    """

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = parameters(rate)
        super().__init__(self.rate.shape, (), validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw so that gradients reach the parameters."""
        return -F.log1p(-lift(draw("rand", self._extended(sample_shape), self.rate.dtype, None))) / self.rate

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        return F.log(self.rate) - self.rate * self._checked(value)

    def entropy(self) -> Any:
        """The differential entropy."""
        return 1 - F.log(self.rate)

    def cdf(self, value: Any) -> Any:
        """The probability of values up to this one."""
        return -F.expm1(-self.rate * self._checked(value))

    @property
    def mean(self) -> Any:
        """The mean."""
        return 1 / self.rate

    @property
    def variance(self) -> Any:
        """The variance."""
        return 1 / F.square(self.rate)
