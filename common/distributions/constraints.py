"""Constraints on parameters and values of distributions; PyTorch's names and texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from common.distributions.constraint_kinds import (
    Constraint,
    MixtureSameFamilyConstraint,
    _Cat,
    _Dependent,
    _DependentProperty,
    _IndependentConstraint,
    _Stack,
)
from common.ops import functional as F
from common.ops.linalg import factorizations, spectral


def _both(*found: Any) -> Any:
    first, *rest = found
    for each in rest:
        first = F.logical_and(first, each)
    return first


def _whole(x: Any) -> Any:
    return x == F.floor(x)


def _oblong(x: Any) -> Any:
    return x.shape[-2] != x.shape[-1]


def _matrices(holds: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A condition on the elements of a matrix, for all of them."""
    return lambda x: F.all(F.flatten(holds(x), -2), -1)


class _Boolean(Constraint):
    """0 or 1."""

    is_discrete = True

    def check(self, value: Any) -> Any:
        return F.logical_or(value == 0, value == 1)


class _OneHot(Constraint):
    """Vectors with one 1 and else 0."""

    is_discrete, event_dim = True, 1

    def check(self, value: Any) -> Any:
        return _both(F.all(F.logical_or(value == 0, value == 1), -1), F.sum(value, -1) == 1)


class _From(Constraint):
    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound


class _To(Constraint):
    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound


class _Between(Constraint):
    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound


class _IntegerInterval(_Between):
    """Whole numbers from a bound to another, both included."""

    is_discrete = True

    def check(self, value: Any) -> Any:
        return _both(value >= self.lower_bound, value <= self.upper_bound, _whole(value))


class _IntegerLessThan(_To):
    """Whole numbers up to a bound, which is included."""

    is_discrete = True

    def check(self, value: Any) -> Any:
        return _both(value <= self.upper_bound, _whole(value))


class _IntegerGreaterThan(_From):
    """Whole numbers from a bound, which is included."""

    is_discrete = True

    def check(self, value: Any) -> Any:
        return _both(value >= self.lower_bound, _whole(value))


class _Real(Constraint):
    """Numbers, not NaN."""

    def check(self, value: Any) -> Any:
        return value == value


class _GreaterThan(_From):
    """Above a bound."""

    def check(self, value: Any) -> Any:
        return value > self.lower_bound


class _GreaterThanEq(_From):
    """At a bound or above."""

    def check(self, value: Any) -> Any:
        return value >= self.lower_bound


class _LessThan(_To):
    """Below a bound."""

    def check(self, value: Any) -> Any:
        return value < self.upper_bound


class _Interval(_Between):
    """From a bound to another, both included."""

    def check(self, value: Any) -> Any:
        return _both(value >= self.lower_bound, value <= self.upper_bound)


class _HalfOpenInterval(_Between):
    """From a bound, included, to another, which is not."""

    def check(self, value: Any) -> Any:
        return _both(value >= self.lower_bound, value < self.upper_bound)


class _Simplex(Constraint):
    """Vectors of numbers >= 0 whose sum is 1."""

    event_dim = 1

    def check(self, value: Any) -> Any:
        return _both(F.all(value >= 0, -1), F.abs(F.sum(value, -1) - 1) < 2e-6)


class _Multinomial(_To):
    """Counts whose sum is at most a bound."""

    is_discrete, event_dim = True, 1

    def check(self, value: Any) -> Any:
        return _both(F.all(value >= 0, -1), F.sum(value, -1) <= self.upper_bound)


class _LowerTriangular(Constraint):
    """Matrices of zeros above the diagonal."""

    event_dim = 2

    def check(self, value: Any) -> Any:
        return _matrices(lambda x: F.tril(x) == x)(value)


class _LowerCholesky(_LowerTriangular):
    """Lower triangular matrices whose diagonal is positive."""

    def check(self, value: Any) -> Any:
        return _both(super().check(value), F.all(F.diagonal(value, 0, -2, -1) > 0, -1))


class _CorrCholesky(_LowerCholesky):
    """Lower Cholesky factors whose rows have the length 1."""

    def check(self, value: Any) -> Any:
        return _both(super().check(value), F.all(F.abs(F.sum(value * value, -1) - 1) < 1e-4, -1))


class _Square(Constraint):
    """Square matrices."""

    event_dim = 2

    def check(self, value: Any) -> Any:
        return F.full_like(value[..., 0, 0], not _oblong(value), dtype=np.dtype(np.bool_))


class _Symmetric(_Square):
    """Symmetric matrices."""

    def check(self, value: Any) -> Any:
        if _oblong(value):
            return super().check(value)
        return _matrices(lambda x: F.isclose(x, F.transpose(x, -2, -1), atol=1e-6))(value)


class _PositiveSemidefinite(_Symmetric):
    """Symmetric matrices whose eigenvalues are not negative."""

    def check(self, value: Any) -> Any:
        symmetric = super().check(value)
        return symmetric if _oblong(value) else _both(symmetric, F.all(spectral.eigvalsh(value) >= -1e-6, -1))


class _PositiveDefinite(_Symmetric):
    """Symmetric matrices whose eigenvalues are positive."""

    def check(self, value: Any) -> Any:
        symmetric = super().check(value)
        return symmetric if _oblong(value) else _both(symmetric, factorizations.cholesky_ex(value)[1] == 0)


independent, dependent, dependent_property = _IndependentConstraint, _Dependent(), _DependentProperty
greater_than, greater_than_eq, less_than = _GreaterThan, _GreaterThanEq, _LessThan
interval, half_open_interval, integer_interval = _Interval, _HalfOpenInterval, _IntegerInterval
multinomial, cat, stack = _Multinomial, _Cat, _Stack

boolean, one_hot, simplex = _Boolean(), _OneHot(), _Simplex()
real = _Real()
real_vector = _IndependentConstraint(real, 1)
positive, nonnegative = _GreaterThan(0.0), _GreaterThanEq(0.0)
unit_interval, open_unit = _Interval(0.0, 1.0), _HalfOpenInterval(0.0, 1.0)
nonnegative_integer, positive_integer = _IntegerGreaterThan(0), _IntegerGreaterThan(1)
lower_triangular, lower_cholesky, corr_cholesky = _LowerTriangular(), _LowerCholesky(), _CorrCholesky()
square, symmetric = _Square(), _Symmetric()
positive_semidefinite, positive_definite = _PositiveSemidefinite(), _PositiveDefinite()


def is_dependent(constraint: Any) -> bool:
    """Whether a constraint depends on parameters."""
    return isinstance(constraint, _Dependent)


__all__ = [
    "Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent",
    "dependent_property", "greater_than", "greater_than_eq", "half_open_interval", "independent", "integer_interval",
    "interval", "is_dependent", "less_than", "lower_cholesky", "lower_triangular", "multinomial", "nonnegative",
    "nonnegative_integer", "one_hot", "positive", "positive_definite", "positive_integer", "positive_semidefinite",
    "real", "real_vector", "simplex", "square", "stack", "symmetric", "unit_interval",
]  # fmt: skip
