"""Functions from unconstrained numbers to values that a constraint allows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from common.core.errors import ArgumentError, NotDefinedError
from common.distributions import constraints
from common.distributions import scalar_transforms as scalar
from common.distributions import vector_transforms as vector
from common.distributions.transforms import ComposeTransform, IndependentTransform, Transform, identity_transform


class ConstraintRegistry:
    """A table from kinds of constraints to functions that make transforms for them."""

    def __init__(self) -> None:
        self._made: dict[type, Callable[[Any], Transform]] = {}

    def register(self, constraint: Any, factory: Callable[[Any], Transform] | None = None) -> Any:
        """Say what makes the transform for a kind of constraint; without `factory` it decorates one.

        Parameters
        ----------
        constraint : a constraint, or a subclass of `Constraint`.
        factory : ``factory(constraint) -> transform``.
        """
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        kind = constraint if isinstance(constraint, type) else type(constraint)
        if not issubclass(kind, constraints.Constraint):
            raise ArgumentError(
                f"Expected constraint to be either a Constraint subclass or instance, but got {constraint!r}"
            )
        self._made[kind] = factory
        return factory

    def __call__(self, constraint: Any) -> Transform:
        """The transform for a constraint.

        Raises
        ------
        NotDefinedError : none is known.
        """
        factory = self._made.get(type(constraint))
        if factory is None:
            raise NotDefinedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


def _scaled(c: Any) -> Transform:
    low, high = c.lower_bound, c.upper_bound
    if isinstance(low, (int, float)) and isinstance(high, (int, float)) and (low, high) == (0, 1):
        return scalar.SigmoidTransform()
    return ComposeTransform([scalar.SigmoidTransform(), scalar.AffineTransform(low, high - low)])


def _above(c: Any) -> Transform:
    if isinstance(c.lower_bound, (int, float)) and c.lower_bound == 0:
        return scalar.ExpTransform()
    return ComposeTransform([scalar.ExpTransform(), scalar.AffineTransform(c.lower_bound, 1)])


def _cat(registry: ConstraintRegistry, c: Any) -> Transform:
    return vector.CatTransform([registry(x) for x in c.cseq], c.dim, c.lengths)


def _stack(registry: ConstraintRegistry, c: Any) -> Transform:
    return vector.StackTransform([registry(x) for x in c.cseq], c.dim)


def _independent(registry: ConstraintRegistry, c: Any) -> Transform:
    return IndependentTransform(registry(c.base_constraint), c.reinterpreted_batch_ndims)


def _below(c: Any) -> Transform:
    return ComposeTransform([scalar.ExpTransform(), scalar.AffineTransform(c.upper_bound, -1)])


_BOTH: dict[Any, Callable[[Any], Transform]] = {
    constraints.real: lambda c: identity_transform,
    constraints.greater_than: _above, constraints.greater_than_eq: _above, constraints.less_than: _below,
    constraints.interval: _scaled, constraints.half_open_interval: _scaled,
    constraints.corr_cholesky: lambda c: vector.CorrCholeskyTransform(),
}  # fmt: skip
biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()
for _registry in (biject_to, transform_to):
    for _constraint, _factory in _BOTH.items():
        _registry.register(_constraint, _factory)
    _registry.register(constraints.cat, partial(_cat, _registry))
    _registry.register(constraints.stack, partial(_stack, _registry))
    _registry.register(constraints.independent, partial(_independent, _registry))
biject_to.register(constraints.simplex, lambda c: vector.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda c: vector.SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda c: vector.LowerCholeskyTransform())
for _constraint in (constraints.positive_definite, constraints.positive_semidefinite):
    transform_to.register(_constraint, lambda c: vector.PositiveDefiniteTransform())
