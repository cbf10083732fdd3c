"""Kinds of constraints on parameters and values: those that are made of others, and those that depend on an object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from common.core.errors import ArgumentError, NotDefinedError
from common.core.int_arguments import members
from common.ops import functional as F


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
        bounds = [
            f"{name}={x}" for name in ("lower_bound", "upper_bound") if (x := self.__dict__.get(name)) is not None
        ]
        return f"{type(self).__name__.removeprefix('_')}({', '.join(bounds)})"


class _Dependent(Constraint):
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

    def __call__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> _Dependent:
        """One of which more is known."""
        given = (is_discrete, event_dim)
        known = [old if new is NotImplemented else new for new, old in zip(given, self._kind, strict=True)]
        return _Dependent(is_discrete=known[0], event_dim=known[1])

    def check(self, value: Any) -> Any:
        """Refused: the values are not known."""
        raise ArgumentError("Cannot determine validity of dependent constraint")


class _DependentProperty(property, _Dependent):
    """A property that returns a constraint; of the class it tells what is known without an object."""

    def __init__(self, fget: Any = None, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> None:
        property.__init__(self, fget)
        self._kind = is_discrete, event_dim

    def __call__(self, fget: Any) -> _DependentProperty:  # type: ignore[override]
        """Decorate a method."""
        return _DependentProperty(fget, is_discrete=self._kind[0], event_dim=self._kind[1])


class _IndependentConstraint(Constraint):
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


class MixtureSameFamilyConstraint(Constraint):
    """A constraint of the components of a mixture: a value has to meet that of each.

    Parameters
    ----------
    base_constraint : of the components.
    """

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint = base_constraint

    is_discrete = property(lambda self: self.base_constraint.is_discrete)
    event_dim = property(lambda self: self.base_constraint.event_dim)

    def check(self, value: Any) -> Any:
        """Whether it holds for all components."""
        if value.ndim < self.event_dim:
            raise ArgumentError(f"Expected value.dim() >= {self.event_dim} but got {value.ndim}")
        found = self.base_constraint.check(F.unsqueeze(value, -1 - self.event_dim))
        return F.all(F.flatten(found, value.ndim - self.event_dim), -1)

    def __repr__(self) -> str:
        return f"MixtureSameFamilyConstraint({self.base_constraint!r})"


class _Cat(Constraint):
    """Constraints for parts of a dimension.

    Parameters
    ----------
    cseq : the constraints of the parts.
    dim : the dimension.
    lengths : sizes of the parts, by default 1 each.
    """

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None) -> None:
        self.cseq, self.dim = members(cseq, "cat", "cseq"), dim
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)

    is_discrete = property(lambda self: any(c.is_discrete for c in self.cseq))
    event_dim = property(lambda self: max(c.event_dim for c in self.cseq))

    def check(self, value: Any) -> Any:
        """Whether each holds for its part."""
        parts = F.split(value, self.lengths, self.dim)
        return F.cat([c.check(v) for c, v in zip(self.cseq, parts, strict=True)], self.dim)


class _Stack(Constraint):
    """Constraints for the slices along a dimension.

    Parameters
    ----------
    cseq : the constraints of the slices.
    dim : the dimension.
    """

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        self.cseq, self.dim = members(cseq, "stack", "cseq"), dim

    is_discrete = property(lambda self: any(c.is_discrete for c in self.cseq))

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        """How many last dimensions belong together."""
        most: int = max(c.event_dim for c in self.cseq)
        return most + (self.dim + most < 0)

    def check(self, value: Any) -> Any:
        """Whether each holds for its slice."""
        slices = [F.select(value, self.dim, i) for i in range(len(self.cseq))]
        return F.stack([c.check(v) for c, v in zip(self.cseq, slices, strict=True)], self.dim)
