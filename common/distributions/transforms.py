"""Changes of variable: invertible functions with the logarithm of the determinant of their derivative."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from common.core.errors import ArgumentError, NotDefinedError
from common.core.int_arguments import lengths, members
from common.distributions import constraints
from common.ops import functional as F


class Transform:
    """An invertible function; a subclass has ``_call(x)``, ``_inverse(y)`` and ``log_abs_det_jacobian(x, y)``.

    Parameters
    ----------
    cache_size : 1 lets ``inv`` return the very operand of the last call for its result; else 0.

    Attributes
    ----------
    domain, codomain : constraints of operands and results.
    bijective : whether each result has one operand.
    sign : +1 or -1, of the derivative of a monotone function of numbers.
    """

    domain: Any = constraints.real
    codomain: Any = constraints.real
    bijective = False
    _sign: Any = None

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ArgumentError(f"cache_size must be 0 or 1, got {cache_size!r}")
        super().__init__()
        self._cache_size, self._cached_x_y = cache_size, (None, None)
        self._inv: Any = None

    @property
    def event_dim(self) -> int:
        """How many last dimensions of operands are transformed together."""
        if self.domain.event_dim == self.codomain.event_dim:
            return int(self.domain.event_dim)
        raise ArgumentError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self) -> Transform:
        """The inverse function."""
        if self._inv is None:
            self._inv = _InverseTransform(self)
        inverse: Transform = self._inv
        return inverse

    @property
    def sign(self) -> Any:
        """The sign of the derivative."""
        if self._sign is None:
            raise NotDefinedError(f"{type(self).__name__} has no sign: it is not monotone")
        return self._sign

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The same function with another `cache_size`."""
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        Transform.__init__(new, cache_size)
        return new

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __call__(self, x: Any) -> Any:
        """The function's value."""
        if self._cache_size and x is self._cached_x_y[0]:
            return self._cached_x_y[1]
        y = self._call(x)
        if self._cache_size:
            self._cached_x_y = x, y
        return y

    def _inv_call(self, y: Any) -> Any:
        if self._cache_size and y is self._cached_x_y[1]:
            return self._cached_x_y[0]
        x = self._inverse(y)
        if self._cache_size:
            self._cached_x_y = x, y
        return x

    def _call(self, x: Any) -> Any:
        raise NotDefinedError(f"{type(self).__name__} has no _call")

    def _inverse(self, y: Any) -> Any:
        raise NotDefinedError(f"{type(self).__name__} has no inverse")

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The logarithm of the magnitude of the derivative's determinant, where y is the value at x."""
        raise NotDefinedError(f"{type(self).__name__} has no log_abs_det_jacobian")

    def forward_shape(self, shape: Any) -> Any:
        """The shape of a result, from that of the operand."""
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of an operand, from that of the result."""
        return shape

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _InverseTransform(Transform):
    def __init__(self, transform: Transform) -> None:
        super().__init__(transform._cache_size)
        self._inv = transform

    domain = property(lambda self: self._inv.codomain)
    codomain = property(lambda self: self._inv.domain)
    bijective = property(lambda self: self._inv.bijective)
    sign = property(lambda self: self._inv.sign)

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self.inv.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    def __call__(self, x: Any) -> Any:
        return self.inv._inv_call(x)

    def _inv_call(self, y: Any) -> Any:
        return self.inv(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -self.inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Any) -> Any:
        return self.inv.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self.inv.forward_shape(shape)

    def __repr__(self) -> str:
        return f"{self._inv!r}.inv"


def sum_rightmost(x: Any, count: int) -> Any:
    """Sums over the last `count` dimensions."""
    return F.sum(x, tuple(range(-count, 0))) if count > 0 else x


class ComposeTransform(Transform):
    """One function after the other.

    Parameters
    ----------
    parts : the functions, the first is called first.
    """

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        given = members(parts, "ComposeTransform", "parts")
        self.parts = [p.with_cache(cache_size) for p in given] if cache_size else given
        super().__init__(cache_size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    @constraints.dependent_property
    def domain(self) -> Any:
        """Constraint of operands."""
        if not self.parts:
            return constraints.real
        need = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            need = max(need + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim)
        first = self.parts[0].domain
        return constraints.independent(first, need - first.event_dim) if need > first.event_dim else first

    @constraints.dependent_property
    def codomain(self) -> Any:
        """Constraint of results."""
        if not self.parts:
            return constraints.real
        need = self.parts[0].domain.event_dim
        for part in self.parts:
            need = max(need + part.codomain.event_dim - part.domain.event_dim, part.codomain.event_dim)
        last = self.parts[-1].codomain
        return constraints.independent(last, need - last.event_dim) if need > last.event_dim else last

    bijective = property(lambda self: all(p.bijective for p in self.parts))
    sign = property(lambda self: math.prod(p.sign for p in self.parts))

    @property
    def inv(self) -> Transform:
        """The inverses, the last first."""
        if self._inv is None:
            self._inv = ComposeTransform([p.inv for p in reversed(self.parts)])
            self._inv._inv = self
        inverse: Transform = self._inv
        return inverse

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The same function with another `cache_size`."""
        return self if self._cache_size == cache_size else ComposeTransform(self.parts, cache_size)

    def __call__(self, x: Any) -> Any:
        """The function's value."""
        for part in self.parts:
            x = part(x)
        return x

    def _inv_call(self, y: Any) -> Any:
        return self.inv(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The sum of those of the parts."""
        if not self.parts:
            return F.zeros_like(x)
        points = [x]
        for part in self.parts[:-1]:
            points.append(part(points[-1]))
        points.append(y)
        terms, event = [], self.domain.event_dim
        for part, a, b in zip(self.parts, points, points[1:], strict=False):
            terms.append(sum_rightmost(part.log_abs_det_jacobian(a, b), event - part.domain.event_dim))
            event += part.codomain.event_dim - part.domain.event_dim
        return sum(terms[1:], terms[0])

    def forward_shape(self, shape: Any) -> Any:
        """The shape of a result."""
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of an operand."""
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        inner = ",\n    ".join(map(repr, self.parts))
        return f"ComposeTransform(\n    {inner}\n)"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A function of which further last dimensions belong to one operand.

    Parameters
    ----------
    base_transform : the function.
    reinterpreted_batch_ndims : how many dimensions more.
    """

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size) if cache_size else base_transform
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @constraints.dependent_property
    def domain(self) -> Any:
        """Constraint of operands."""
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property
    def codomain(self) -> Any:
        """Constraint of results."""
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    bijective = property(lambda self: self.base_transform.bijective)
    sign = property(lambda self: self.base_transform.sign)

    def _enough(self, x: Any, constraint: Any) -> Any:
        if x.ndim < constraint.event_dim:
            raise ArgumentError(f"Too few dimensions on input: {x.ndim}, where {constraint.event_dim} belong together")
        return x

    def _call(self, x: Any) -> Any:
        return self.base_transform(self._enough(x, self.domain))

    def _inverse(self, y: Any) -> Any:
        return self.base_transform.inv(self._enough(y, self.codomain))

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The sum over the further dimensions."""
        return sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Any) -> Any:
        """The shape of a result."""
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of an operand."""
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        return f"IndependentTransform({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


def _lengths(sizes: Any, name: str) -> tuple[Any, ...]:
    return lengths(members(sizes, "ReshapeTransform", name), "ReshapeTransform", name)


class ReshapeTransform(Transform):
    """Another shape of the last dimensions.

    Parameters
    ----------
    in_shape, out_shape : sizes before and after, of one number of elements.

    Raises
    ------
    ArgumentError : something else than ints, or other numbers of elements.
    ShapeError : a negative size.
    """

    bijective = True

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        self.in_shape, self.out_shape = _lengths(in_shape, "in_shape"), _lengths(out_shape, "out_shape")
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise ArgumentError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size)
        self.domain = constraints.independent(constraints.real, len(self.in_shape))
        self.codomain = constraints.independent(constraints.real, len(self.out_shape))

    def _moved(self, shape: Any, old: Any, new: Any) -> Any:
        cut = len(shape) - len(old)
        if cut < 0:
            raise ArgumentError("Too few dimensions on input")
        if tuple(shape[cut:]) != old:
            raise ArgumentError(f"Shape mismatch: expected {tuple(shape[cut:])} but got {old}")
        return (*shape[:cut], *new)

    def _call(self, x: Any) -> Any:
        return F.reshape(x, self.forward_shape(x.shape))

    def _inverse(self, y: Any) -> Any:
        return F.reshape(y, self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Zeros."""
        return F.sum(x * 0, tuple(range(-len(self.in_shape), 0))) if self.in_shape else F.zeros_like(x)

    def forward_shape(self, shape: Any) -> Any:
        """The shape of a result."""
        return self._moved(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of an operand."""
        return self._moved(shape, self.out_shape, self.in_shape)
