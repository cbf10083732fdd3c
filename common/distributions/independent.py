"""Dimensions of a batch as dimensions of one draw."""

from __future__ import annotations

from typing import Any

from common.core.errors import ArgumentError, NotDefinedError
from common.distributions import constraints
from common.distributions.distribution import Distribution, Shape
from common.ops import functional as F


class Independent(Distribution):
    """The last dimensions of a batch as dimensions of one draw.

    Parameters
    ----------
    base_distribution : a distribution.
    reinterpreted_batch_ndims : how many dimensions of its batch.

    Raises
    ------
    ArgumentError : it has not so many.
    """

    arg_constraints: Any = {}

    def __init__(
        self, base_distribution: Any, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ) -> None:
        batch, n = base_distribution.batch_shape, reinterpreted_batch_ndims
        if not 0 <= n <= len(batch):
            raise ArgumentError(
                f"Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual {n} vs {len(batch)}"
            )
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, n
        kept = len(batch) - n
        super().__init__(batch[:kept], (*batch[kept:], *base_distribution.event_shape), validate_args)

    has_rsample = property(lambda self: self.base_dist.has_rsample)
    has_enumerate_support = property(
        lambda self: self.base_dist.has_enumerate_support and not self.reinterpreted_batch_ndims
    )

    @constraints.dependent_property
    def support(self) -> Any:
        """That of the base, of all dimensions of a draw together."""
        base, n = self.base_dist.support, self.reinterpreted_batch_ndims
        return constraints.independent(base, n) if n else base

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distributions for a larger batch."""
        event = self.event_shape[: self.reinterpreted_batch_ndims]
        new = super().expand(batch_shape, _instance)
        new.base_dist = self.base_dist.expand((*tuple(batch_shape), *event))
        return new

    def _summed(self, x: Any) -> Any:
        return F.sum(x, tuple(range(-self.reinterpreted_batch_ndims, 0))) if self.reinterpreted_batch_ndims else x

    def _family_draw(self, shape: Shape) -> Any:
        count = len(shape) - len(self.batch_shape) - len(self.event_shape)
        return (self.base_dist.rsample if self.has_rsample else self.base_dist.sample)(shape[:count])

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density of all dimensions of a draw together."""
        return self._summed(self.base_dist.log_prob(value))

    def _family_entropy(self) -> Any:
        return self._summed(self.base_dist.entropy())

    def enumerate_support(self, expand: bool = True) -> Any:
        """The base's values; refused where dimensions are joined."""
        if self.reinterpreted_batch_ndims:
            raise NotDefinedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand)

    def _family_mean(self) -> Any:
        return self.base_dist.mean

    def _family_mode(self) -> Any:
        return self.base_dist.mode

    def _family_variance(self) -> Any:
        return self.base_dist.variance

    def __repr__(self) -> str:
        return f"Independent({self.base_dist!r}, {self.reinterpreted_batch_ndims})"
