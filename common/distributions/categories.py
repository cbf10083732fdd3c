"""Families of classes, and mixtures."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from common.core.dtypes import int64
from common.core.errors import ArgumentError, NotDefinedError
from common.core.size_tuples import Size
from common.distributions import constraints
from common.distributions.counted import Binomial
from common.distributions.distribution import Distribution, Shape, identity, limits, whole_numbers
from common.distributions.odds import Odds, one_of
from common.evaluate.specialise import remembered
from common.ops import functional as F
from common.random.sampling import multinomial


@remembered
def _family_log_prob(value: Any, logits: Any) -> Any:
    index, logits = F.broadcast_tensors(F.unsqueeze(value, -1), logits)
    return F.select(F.gather(logits, -1, F.narrow(index, -1, 0, 1)), -1, 0)


class Categorical(Odds, Distribution):
    """Indices with probabilities.

    Parameters
    ----------
    probs, logits : (..., n) weights, or logarithms of them; one of them.

    Raises
    ------
    ArgumentError : both are given, or none; a number.
    """

    _binary = False
    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        ((name, given),) = one_of(probs, logits).items()
        if given.ndim < 1:
            raise ArgumentError(f"`{name}` parameter must be at least one-dimensional.")
        self.__dict__[name] = given - F.logsumexp(given, -1, True) if probs is None else given / F.sum(given, -1, True)
        self._num_events = given.shape[-1]
        super().__init__(given.shape[:-1], (), validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        """The indices."""
        return constraints.integer_interval(0, self._num_events - 1)

    def _family_draw(self, shape: Shape) -> Any:
        shape = tuple(shape)
        count = shape[: len(shape) - len(self.batch_shape)]
        rows = F.reshape(self.probs, (-1, self._num_events))
        if math.prod(shape) == 0:
            return F.sum(F.reshape(rows, (-1,))[:0]).to(int64).expand(*shape)
        return F.reshape(F.transpose(multinomial(rows, math.prod(count), True), 0, 1), shape)

    def _validate_sample(self, value: Any, takes_numbers: bool = False) -> Any:
        value = super()._validate_sample(value, takes_numbers)
        return value.to(np.dtype(int64))

    def _family_log_prob(self, value: Any) -> Any:
        return _family_log_prob(value, self.logits)

    def _family_entropy(self) -> Any:
        return -F.sum(F.clamp(self.logits, min=float(limits(self.logits).min)) * self.probs, -1)

    def _family_values(self) -> Any:
        return whole_numbers(self._num_events, np.dtype(int64))

    def _family_mean(self) -> Any:
        return F.full_like(self._given[..., 0], math.nan)

    def _family_mode(self) -> Any:
        return F.argmax(self._given, -1)

    def _family_variance(self) -> Any:
        return F.full_like(self._given[..., 0], math.nan)


class _Classes(Distribution):
    """The base of families that are built on a `Categorical`."""

    arg_constraints: Any = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits, validate_args)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args)

    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    param_shape = property(lambda self: self._categorical.param_shape)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distributions for a larger batch."""
        new = super().expand(batch_shape, _instance)
        new._categorical = self._categorical.expand(batch_shape)
        return new

    def _corner(self, index: Any) -> Any:
        return F.one_hot(index, self.event_shape[0]).to(self._categorical._given.dtype)

    def __repr__(self) -> str:
        name = "logits" if "logits" in self._categorical.__dict__ else "probs"
        return f"{type(self).__name__}({name}: {Size(self.param_shape)})"


class OneHotCategorical(_Classes):
    """Classes as vectors of one 1.

    Parameters
    ----------
    probs, logits : (..., n), as of `Categorical`.
    """

    support: Any = constraints.one_hot
    has_enumerate_support = True

    def _family_draw(self, shape: Shape) -> Any:
        return self._corner(self._categorical._family_draw(shape[:-1]))

    def _family_log_prob(self, value: Any) -> Any:
        return self._categorical.log_prob(F.argmax(value, -1))

    def _family_entropy(self) -> Any:
        return self._categorical.entropy()

    def _family_values(self) -> Any:
        return identity(self.event_shape[0], self._categorical._given.dtype)

    def _family_mean(self) -> Any:
        return self.probs

    def _family_mode(self) -> Any:
        return self._corner(self._categorical.mode)

    def _family_variance(self) -> Any:
        return self.probs * (1 - self.probs)


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """`OneHotCategorical` whose draws have the gradient of the probabilities.

    Parameters
    ----------
    probs, logits : (..., n), as of `Categorical`.

    References
    ----------
    Y. Bengio, N. Léonard, A. Courville: Estimating or propagating gradients through stochastic neurons. 2013.
    """

    has_rsample = True

    def _family_draw(self, shape: Shape) -> Any:
        return super()._family_draw(shape) + (self.probs - self.probs.detach())


class Multinomial(_Classes):
    """Counts of classes among draws.

    Parameters
    ----------
    total_count : an int: how many draws.
    probs, logits : (..., n), as of `Categorical`.

    Raises
    ------
    NotDefinedError : another number of draws for each distribution of the batch.
    """

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        if not isinstance(total_count, (int, np.integer)) or isinstance(total_count, bool):
            raise NotDefinedError("inhomogeneous total_count is not supported")
        self.total_count = int(total_count)
        super().__init__(probs, logits, validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        """Counts of that sum."""
        return constraints.multinomial(self.total_count)

    def _family_draw(self, shape: Shape) -> Any:
        drawn = self._categorical._family_draw((self.total_count, *shape[:-1]))
        counts = F.zeros_like(self.probs).expand(*shape)
        return F.scatter_add(counts, -1, *_ones(F.movedim(drawn, 0, -1), counts))

    def _family_log_prob(self, value: Any) -> Any:
        logits, value = F.broadcast_tensors(self.logits, value)
        logits = F.where(F.logical_and(value == 0, logits == -math.inf), F.zeros_like(logits), logits)
        choices = F.lgamma(F.sum(value, -1) + 1) - F.sum(F.lgamma(value + 1), -1)
        return choices + F.sum(logits * value, -1)

    def _family_entropy(self) -> Any:
        n = self.total_count
        each = Binomial(n, self.probs, validate_args=False)
        counts = whole_numbers(n, self.probs.dtype) + 1
        counts = F.reshape(counts, (n, *(1,) * self.probs.ndim))
        spread = F.sum(F.exp(each._family_log_prob(counts)) * F.lgamma(counts + 1), (0, -1)) if n else 0.0
        return n * self._categorical.entropy() - math.lgamma(n + 1) + spread

    def _family_mean(self) -> Any:
        return self.probs * self.total_count

    def _family_variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)


def _ones(index: Any, like: Any) -> tuple[Any, Any]:
    return index, F.ones_like(index).to(like.dtype)


class MixtureSameFamily(Distribution):
    """Mixtures: a class is drawn, then of the class's distribution.

    Parameters
    ----------
    mixture_distribution : a `Categorical`, of n classes.
    component_distribution : a distribution whose batch has n as its last size.

    Raises
    ------
    ArgumentError : another kind of distribution, or sizes that do not fit.
    """

    arg_constraints: Any = {}

    def __init__(
        self, mixture_distribution: Any, component_distribution: Any, validate_args: bool | None = None
    ) -> None:
        mixture, component = mixture_distribution, component_distribution
        if not isinstance(mixture, Categorical):
            raise ArgumentError(" The Mixture distribution needs to be an instance of torch.distributions.Categorical")
        if not isinstance(component, Distribution):
            raise ArgumentError(
                "The Component distribution needs to be an instance of torch.distributions.Distribution"
            )
        shape = component.batch_shape[:-1]
        if not len(component.batch_shape):
            raise ArgumentError("`component_distribution` needs a batch whose last size is that of the mixture")
        for ours, theirs in zip(reversed(mixture.batch_shape), reversed(shape), strict=False):
            if ours != 1 and theirs != 1 and ours != theirs:
                raise ArgumentError(
                    f"`mixture_distribution.batch_shape` ({mixture.batch_shape}) is not compatible with "
                    f"`component_distribution.batch_shape`({shape})"
                )
        if component.batch_shape[-1] != mixture._num_events:
            raise ArgumentError(
                f"`mixture_distribution component` ({mixture._num_events}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({component.batch_shape[-1]})"
            )
        self._mixture_distribution, self._component_distribution = mixture.expand(shape), component
        super().__init__(shape, component.event_shape, validate_args)

    mixture_distribution = property(lambda self: self._mixture_distribution)
    component_distribution = property(lambda self: self._component_distribution)

    @constraints.dependent_property
    def support(self) -> Any:
        """That of the components, for each of them."""
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distributions for a larger batch."""
        new = super().expand(batch_shape, _instance)
        shape, n = tuple(batch_shape), self._mixture_distribution._num_events
        new._component_distribution = self._component_distribution.expand((*shape, n))
        new._mixture_distribution = self._mixture_distribution.expand(shape)
        return new

    def _weighted(self, x: Any) -> Any:
        """Means over the classes of what each component has."""
        weights = self._mixture_distribution.probs
        weights = F.reshape(weights, (*weights.shape, *(1,) * len(self.event_shape)))
        return F.sum(weights * x, -1 - len(self.event_shape))

    def _family_draw(self, shape: Shape) -> Any:
        count, event = shape[: len(shape) - len(self.batch_shape) - len(self.event_shape)], len(self.event_shape)
        which = self._mixture_distribution.sample(count)
        drawn = self._component_distribution.sample(count)
        index = F.reshape(which, (*which.shape, *(1,) * (event + 1)))
        index = index.expand(*which.shape, 1, *self.event_shape)
        return F.squeeze(F.gather(drawn, -1 - event, index), -1 - event)

    def _family_log_prob(self, value: Any) -> Any:
        value = F.unsqueeze(value, -1 - len(self.event_shape))
        logits = self._mixture_distribution.logits
        return F.logsumexp(self._component_distribution.log_prob(value) + logits - F.logsumexp(logits, -1, True), -1)

    def _family_cdf(self, value: Any) -> Any:
        value = F.unsqueeze(value, -1 - len(self.event_shape))
        return F.sum(self._component_distribution.cdf(value) * self._mixture_distribution.probs, -1)

    def _family_mean(self) -> Any:
        return self._weighted(self._component_distribution.mean)

    def _family_variance(self) -> Any:
        component = self._component_distribution
        apart = component.mean - F.unsqueeze(self._family_mean(), -1 - len(self.event_shape))
        return self._weighted(component.variance) + self._weighted(F.square(apart))

    def __repr__(self) -> str:
        return f"MixtureSameFamily({self._mixture_distribution!r}, {self._component_distribution!r})"
