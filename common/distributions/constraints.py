"""Constraints on parameters and values of distributions; PyTorch's names and texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from common.core.errors import ArgumentError, NotDefinedError
from common.core.int_arguments import members
from common.ops import functional as F
from common.ops.linalg import factorizations, spectral


class Constraint:
    """A condition on values; a subclass has ``check``.

    Attributes
    ----------
    is_discrete : whether the values are a countable set.
    event_dim : how many last dimensions the condition looks at together.
    """

    is_discrete = False
    event_dim = 0

    def check(self, value: Any) -> Any:
        """Whether the condition holds: truth values, of the value's shape without the last `event_dim` dimensions."""
        raise NotDefinedError(f"{type(self).__name__} has no check")

    def __repr__(self) -> str:
        return f"{type(self).__name__.removeprefix('_')}()"


class Condition(Constraint):
    """A constraint that a function checks; see `Constraint`.

    Parameters
    ----------
    text : what messages call it.
    holds : ``holds(x)`` is a tensor of truth values.
    bounds : shown, and attributes: ``lower_bound``, ``upper_bound``.
    """

    def __init__(
        self, text: str, holds: Callable[[Any], Any], event_dim: int = 0, discrete: bool = False, **bounds: Any
    ) -> None:
        self.text, self.holds, self.event_dim, self.is_discrete = text, holds, event_dim, discrete
        self.__dict__.update(bounds)
        self._bounds = bounds

    def check(self, value: Any) -> Any:
        """Whether the condition holds, see `Constraint.check`."""
        return self.holds(value)

    def __repr__(self) -> str:
        return f"{self.text}({', '.join(f'{name}={bound}' for name, bound in self._bounds.items())})"


class Dependent(Constraint):
    """A support that depends on parameters or on other distributions, of which only its kind is known.

    Raises
    ------
    NotDefinedError : on `is_discrete` or `event_dim`, where they are not given.
    """

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> None:
        self._kind = is_discrete, event_dim

    def _told(self, place: int) -> Any:
        if self._kind[place] is NotImplemented:
            raise NotDefinedError(f".{('is_discrete', 'event_dim')[place]} cannot be determined statically")
        return self._kind[place]

    is_discrete = property(lambda self: self._told(0))
    event_dim = property(lambda self: self._told(1))

    def __call__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> Dependent:
        """One of which more is known."""
        given = (is_discrete, event_dim)
        known = [old if new is NotImplemented else new for new, old in zip(given, self._kind, strict=True)]
        return Dependent(is_discrete=known[0], event_dim=known[1])

    def check(self, value: Any) -> Any:
        """Refused: the values are not known."""
        raise ArgumentError("Cannot determine validity of dependent constraint")


class DependentProperty(property, Dependent):
    """A property that returns a constraint; of the class it tells what is known without an object."""

    def __init__(self, fget: Any = None, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> None:
        property.__init__(self, fget)
        self._kind = is_discrete, event_dim

    def __call__(self, fget: Any) -> DependentProperty:  # type: ignore[override]
        """Decorate a method."""
        return DependentProperty(fget, is_discrete=self._kind[0], event_dim=self._kind[1])


class IndependentConstraint(Constraint):
    """A constraint for all elements of the last dimensions together.

    Parameters
    ----------
    base_constraint : of the elements.
    reinterpreted_batch_ndims : how many dimensions.
    """

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims

    is_discrete = property(lambda self: self.base_constraint.is_discrete)
    event_dim = property(lambda self: self.base_constraint.event_dim + self.reinterpreted_batch_ndims)

    def check(self, value: Any) -> Any:
        """Whether it holds for all."""
        found = self.base_constraint.check(value)
        if found.ndim < self.reinterpreted_batch_ndims:
            least = self.base_constraint.event_dim + self.reinterpreted_batch_ndims
            raise ArgumentError(f"Expected value.dim() >= {least} but got {value.ndim}")
        for _ in range(self.reinterpreted_batch_ndims):
            found = F.all(found, -1)
        return found

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class JoinedConstraint(Constraint):
    """Constraints for the parts of a dimension, by `cat` or `stack`.

    Parameters
    ----------
    cseq : the constraints of the parts.
    dim : the dimension.
    lengths : sizes of the parts, by default 1 each; None where the parts are stacked.
    """

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None) -> None:
        self.cseq, self.dim, self.lengths = members(cseq, "cat", "cseq"), dim, lengths
        self.is_discrete = any(c.is_discrete for c in self.cseq)
        dims = [c.event_dim for c in self.cseq]
        self.event_dim = max(dims) + (1 if lengths is None and dim < 0 and -dim > max(dims) + 1 else 0)

    def check(self, value: Any) -> Any:
        """Whether each holds for its part."""
        if self.lengths is None:
            parts = [F.select(value, self.dim, i) for i in range(len(self.cseq))]
            return F.stack([c.check(v) for c, v in zip(self.cseq, parts, strict=True)], self.dim)
        parts = F.split(value, list(self.lengths), self.dim)
        return F.cat([c.check(v) for c, v in zip(self.cseq, parts, strict=True)], self.dim)


def stack(cseq: Sequence[Constraint], dim: int = 0) -> Constraint:
    """Constraints for the slices along a dimension."""
    return JoinedConstraint(cseq, dim)


def cat(cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None) -> Constraint:
    """Constraints for parts of a dimension of these lengths, by default 1."""
    cseq = members(cseq, "cat", "cseq")
    return JoinedConstraint(cseq, dim, [1] * len(cseq) if lengths is None else lengths)


def _both(*found: Any) -> Any:
    first, *rest = found
    for each in rest:
        first = F.logical_and(first, each)
    return first


def _whole(x: Any) -> Any:
    return x == F.floor(x)


def _matrices(holds: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A condition on the elements of a matrix, for all of them."""
    return lambda x: F.all(F.flatten(holds(x), -2), -1)


def _diagonal(x: Any) -> Any:
    return F.diagonal(x, 0, -2, -1)


def _is_square(x: Any) -> Any:
    return F.full_like(x[..., 0, 0], x.shape[-2] == x.shape[-1], dtype=np.dtype(np.bool_))


def _is_symmetric(x: Any) -> Any:
    if x.shape[-2] != x.shape[-1]:
        return _is_square(x)
    return _matrices(lambda x: F.isclose(x, F.transpose(x, -2, -1), atol=1e-6))(x)


def _tril(x: Any) -> Any:
    return _matrices(lambda x: F.tril(x) == x)(x)


class GreaterThan(Condition):
    """Above a bound."""

    def __init__(self, lower_bound: Any) -> None:
        super().__init__("GreaterThan", lambda x: x > lower_bound, lower_bound=lower_bound)


class GreaterThanEq(Condition):
    """At a bound or above."""

    def __init__(self, lower_bound: Any) -> None:
        super().__init__("GreaterThanEq", lambda x: x >= lower_bound, lower_bound=lower_bound)


class LessThan(Condition):
    """Below a bound."""

    def __init__(self, upper_bound: Any) -> None:
        super().__init__("LessThan", lambda x: x < upper_bound, upper_bound=upper_bound)


class Interval(Condition):
    """From a bound to another, both included."""

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        super().__init__(
            "Interval", lambda x: _both(x >= lower_bound, x <= upper_bound), lower_bound=lower_bound,
            upper_bound=upper_bound,
        )  # fmt: skip


class HalfOpenInterval(Condition):
    """From a bound, included, to another, which is not."""

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        super().__init__(
            "HalfOpenInterval", lambda x: _both(x >= lower_bound, x < upper_bound), lower_bound=lower_bound,
            upper_bound=upper_bound,
        )  # fmt: skip


def integer_interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """Whole numbers from a bound to another, both included."""
    return Condition(
        "IntegerInterval", lambda x: _both(x >= lower_bound, x <= upper_bound, _whole(x)), discrete=True,
        lower_bound=lower_bound, upper_bound=upper_bound,
    )  # fmt: skip


def multinomial(upper_bound: Any) -> Constraint:
    """Counts whose sum is at most a bound."""
    return Condition(
        "Multinomial", lambda x: _both(F.all(x >= 0, -1), F.sum(x, -1) <= upper_bound), 1, True,
        upper_bound=upper_bound,
    )  # fmt: skip


class Simplex(Condition):
    """Vectors of numbers >= 0 whose sum is 1."""

    def __init__(self) -> None:
        super().__init__("Simplex", lambda x: _both(F.all(x >= 0, -1), F.abs(F.sum(x, -1) - 1) < 2e-6), 1)


class LowerCholesky(Condition):
    """Lower triangular matrices whose diagonal is positive."""

    def __init__(self) -> None:
        super().__init__("LowerCholesky", lambda x: _both(_tril(x), F.all(_diagonal(x) > 0, -1)), 2)


class CorrCholesky(Condition):
    """Lower Cholesky factors whose rows have the length 1."""

    def __init__(self) -> None:
        def holds(x: Any) -> Any:
            unit = F.all(F.abs(F.sum(x * x, -1) - 1) < 1e-4, -1)
            return _both(_tril(x), F.all(_diagonal(x) > 0, -1), unit)

        super().__init__("CorrCholesky", holds, 2)


class PositiveDefinite(Condition):
    """Symmetric matrices whose eigenvalues are positive."""

    def __init__(self) -> None:
        def holds(x: Any) -> Any:
            if x.shape[-2] != x.shape[-1]:
                return _is_square(x)
            return _both(_is_symmetric(x), factorizations.cholesky_ex(x)[1] == 0)

        super().__init__("PositiveDefinite", holds, 2)


class PositiveSemidefinite(Condition):
    """Symmetric matrices whose eigenvalues are not negative."""

    def __init__(self) -> None:
        def holds(x: Any) -> Any:
            if x.shape[-2] != x.shape[-1]:
                return _is_square(x)
            return _both(_is_symmetric(x), F.all(spectral.eigvalsh(x) >= -1e-6, -1))

        super().__init__("PositiveSemidefinite", holds, 2)


class Real(Condition):
    """Numbers, not NaN."""

    def __init__(self) -> None:
        super().__init__("Real", lambda x: x == x)


independent = IndependentConstraint
greater_than, greater_than_eq, less_than = GreaterThan, GreaterThanEq, LessThan
interval, half_open_interval = Interval, HalfOpenInterval
dependent, dependent_property = Dependent(), DependentProperty

real = Real()
real_vector = IndependentConstraint(real, 1)
positive = GreaterThan(0.0)
nonnegative = GreaterThanEq(0.0)
unit_interval = Interval(0.0, 1.0)
open_unit = HalfOpenInterval(0.0, 1.0)
boolean = Condition("Boolean", lambda x: F.logical_or(x == 0, x == 1), discrete=True)
nonnegative_integer = Condition("IntegerGreaterThan", lambda x: _both(x >= 0, _whole(x)), 0, True, lower_bound=0)
positive_integer = Condition("IntegerGreaterThan", lambda x: _both(x >= 1, _whole(x)), 0, True, lower_bound=1)
one_hot = Condition(
    "OneHot", lambda x: _both(F.all(F.logical_or(x == 0, x == 1), -1), F.sum(x, -1) == 1), 1, discrete=True
)
simplex = Simplex()
lower_triangular = Condition("LowerTriangular", _tril, 2)
lower_cholesky = LowerCholesky()
corr_cholesky = CorrCholesky()
square = Condition("Square", _is_square, 2)
symmetric = Condition("Symmetric", _is_symmetric, 2)
positive_semidefinite = PositiveSemidefinite()
positive_definite = PositiveDefinite()


def is_dependent(constraint: Any) -> bool:
    """Whether a constraint depends on parameters."""
    return isinstance(constraint, Dependent)


__all__ = [
    "Constraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property", "greater_than",
    "greater_than_eq", "half_open_interval", "independent", "integer_interval", "interval", "is_dependent",
    "less_than", "lower_cholesky", "lower_triangular", "multinomial", "nonnegative", "nonnegative_integer", "one_hot",
    "positive", "positive_definite", "positive_integer", "positive_semidefinite", "real", "real_vector", "simplex",
    "square", "stack", "symmetric", "unit_interval",
]  # fmt: skip
