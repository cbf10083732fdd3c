"""Distributions of functions of draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from common.core.errors import ArgumentError
from common.distributions import constraints
from common.distributions.distribution import Distribution, Shape
from common.distributions.independent import Independent
from common.distributions.transforms import ComposeTransform, Transform, sum_rightmost
from common.tensor.base import TensorBase


class TransformedDistribution(Distribution):
    """Draws of a distribution, through functions.

    Parameters
    ----------
    base_distribution : whose draws.
    transforms : a `Transform`, or a list of them, the first is called first.

    Raises
    ------
    ArgumentError : they are no transforms; the base has too few dimensions for them.

    Examples
    --------
    >>> import dynamic as tw
    >>> d = tw.distributions
    >>> d.TransformedDistribution(d.Normal(0.0, 1.0), [d.ExpTransform()]).log_prob(tw.tensor(1.0))
    tensor(-0.9189)
    """

    arg_constraints: Any = {}

    def __init__(
        self, base_distribution: Any, transforms: Transform | Sequence[Transform], validate_args: bool | None = None
    ) -> None:
        self.transforms = [transforms] if isinstance(transforms, Transform) else list(transforms)
        if not all(isinstance(t, Transform) for t in self.transforms):
            raise ArgumentError(f"transforms must be a Transform or a list of Transforms, but was {transforms!r}")
        whole = ComposeTransform(self.transforms)
        base, event = base_distribution, len(base_distribution.event_shape)
        shape = (*base.batch_shape, *base.event_shape)
        if len(shape) < whole.domain.event_dim:
            raise ArgumentError(
                f"base_distribution needs to have shape with size at least {whole.domain.event_dim}, but got {shape}."
            )
        after = whole.forward_shape(shape)
        wide = whole.inverse_shape(after)
        if tuple(wide) != tuple(shape):
            base = base.expand(wide[: len(wide) - event])
        joined = whole.domain.event_dim - event
        self.base_dist = Independent(base, joined) if joined > 0 else base
        dims = whole.codomain.event_dim + max(event - whole.domain.event_dim, 0)
        cut = len(after) - dims
        super().__init__(after[:cut], after[cut:], validate_args)

    has_rsample = property(lambda self: self.base_dist.has_rsample)

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        """The results of the last function."""
        if not self.transforms:
            return self.base_dist.support
        last = self.transforms[-1].codomain
        joined = len(self.event_shape) - last.event_dim
        return constraints.independent(last, joined) if joined > 0 else last

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distributions for a larger batch."""
        new = self._get_checked_instance(type(self), _instance)
        new.__dict__ |= {**self.__dict__, **new.__dict__}
        whole = ComposeTransform(self.transforms)
        shape = whole.inverse_shape((*tuple(batch_shape), *self.event_shape))
        base = self.base_dist.expand(tuple(shape)[: len(shape) - len(self.base_dist.event_shape)])
        new.base_dist = base
        Distribution.__init__(new, batch_shape, self.event_shape, False)
        new._validate_args = self._validate_args
        return new

    def _family_draw(self, shape: Shape) -> Any:
        count = len(shape) - len(self.batch_shape) - len(self.event_shape)
        x = (self.base_dist.rsample if self.has_rsample else self.base_dist.sample)(shape[:count])
        for t in self.transforms:
            x = t(x)
        return x

    def _family_log_prob(self, value: Any) -> Any:
        terms: Any = 0.0
        event, y = len(self.event_shape), value
        for t in reversed(self.transforms):
            x = t.inv(y)
            event += t.domain.event_dim - t.codomain.event_dim
            terms = terms - sum_rightmost(t.log_abs_det_jacobian(x, y), event - t.domain.event_dim)
            y = x
        return terms + sum_rightmost(self.base_dist.log_prob(y), event - len(self.base_dist.event_shape))

    def _turned(self, p: Any) -> Any:
        """Probabilities as those of the base: a falling function turns them round."""
        sign: Any = 1
        for t in self.transforms:
            sign = sign * t.sign
        if not isinstance(sign, TensorBase):
            return p if sign == 1 else 1 - p
        return sign * (p - 0.5) + 0.5

    def _family_cdf(self, value: Any) -> Any:
        for t in reversed(self.transforms):
            value = t.inv(value)
        return self._turned(self.base_dist.cdf(value))

    def _family_icdf(self, p: Any) -> Any:
        value = self.base_dist.icdf(self._turned(p))
        for t in self.transforms:
            value = t(value)
        return value

    def __repr__(self) -> str:
        if self.arg_constraints:
            shown = (
                f"{n}: {tuple(x.shape)}" for n in self.arg_constraints if (x := getattr(self, n, None)) is not None
            )
            return f"{type(self).__name__}({', '.join(shown)})"
        return f"{type(self).__name__}({self.base_dist!r}, {self.transforms!r})"
