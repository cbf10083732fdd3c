"""Changes of variable of vectors and matrices, and of parts of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from common.core.errors import ArgumentError, NotDefinedError, ShapeError
from common.core.int_arguments import members
from common.distributions import constraints
from common.distributions.distribution import limits, whole_numbers
from common.distributions.scalar_transforms import Alike, TanhTransform, clipped
from common.distributions.transforms import Transform, sum_rightmost
from common.ops import functional as F
from common.ops.linalg import factorizations


class SoftmaxTransform(Alike):
    """``softmax(x)``; its inverse is one of the logarithms that have this result."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Any) -> Any:
        return F.softmax(x, -1)

    def _inverse(self, y: Any) -> Any:
        return F.log(y)

    def forward_shape(self, shape: Any) -> Any:
        """The same."""
        if len(members(shape, "forward_shape", "shape")) < 1:
            raise ArgumentError("Too few dimensions on input")
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(Alike):
    """n numbers as n + 1 parts of a stick: each breaks a part off the rest."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def _shifted(self, x: Any) -> Any:
        """How many parts are left at each break, as a logarithm; then equal numbers make equal parts."""
        n = x.shape[-1]
        return x - F.log(n - whole_numbers(n, x.dtype))

    def _call(self, x: Any) -> Any:
        z = clipped(F.sigmoid(self._shifted(x)))
        left = F.cumprod(1 - z, -1)
        return F.pad(z, (0, 1), value=1.0) * F.pad(left, (1, 0), value=1.0)

    def _inverse(self, y: Any) -> Any:
        parts = y[..., :-1]
        left = F.clamp(1 - F.cumsum(parts, -1), min=float(limits(y).tiny))
        n = parts.shape[-1]
        return F.log(parts) - F.log(left) + F.log(n - whole_numbers(n, y.dtype))

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The sum of ``log(part) - softplus(x)``, x shifted."""
        return F.sum(F.logsigmoid(-self._shifted(x)) + F.log(y[..., :-1]), -1)

    def forward_shape(self, shape: Any) -> Any:
        """One more."""
        if len(members(shape, "forward_shape", "shape")) < 1:
            raise ArgumentError("Too few dimensions on input")
        return (*shape[:-1], shape[-1] + 1)

    def inverse_shape(self, shape: Any) -> Any:
        """One less."""
        if len(members(shape, "forward_shape", "shape")) < 1:
            raise ArgumentError("Too few dimensions on input")
        return (*shape[:-1], shape[-1] - 1)


class LowerCholeskyTransform(Alike):
    """The lower triangle of a matrix, with the exponentials of its diagonal."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Any) -> Any:
        return F.tril(x, -1) + F.diag_embed(F.exp(F.diagonal(x, 0, -2, -1)))

    def _inverse(self, y: Any) -> Any:
        return F.tril(y, -1) + F.diag_embed(F.log(F.diagonal(y, 0, -2, -1)))


class PositiveDefiniteTransform(Alike):
    """``L L^T``, with L of `LowerCholeskyTransform`."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Any) -> Any:
        factor = LowerCholeskyTransform()(x)
        return F.matmul(factor, F.transpose(factor, -2, -1))

    def _inverse(self, y: Any) -> Any:
        return LowerCholeskyTransform().inv(factorizations.cholesky(y))


class CorrCholeskyTransform(Alike):
    """n (n - 1) / 2 numbers as the Cholesky factor of a correlation matrix of n rows.

    A number's tanh is the part that an element takes of the square root of what its row has left of length 1.

    References
    ----------
    Lewandowski, Kurowicka, Joe: Generating random correlation matrices based on vines and extended onion method. 2009.
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _rows(self, count: Any) -> int:
        n = round((math.sqrt(1 + 8 * int(count)) + 1) / 2)
        if n * (n - 1) // 2 != count:
            raise ArgumentError("Input is not a flattened lower-diagonal number")
        return n

    def _call(self, x: Any) -> Any:
        n = self._rows(x.shape[-1])
        limit = 1 - 2 * float(limits(x).eps)
        t = F.clamp(F.tanh(x), min=-limit, max=limit)
        rows, start = [], 0
        for i in range(n):
            own = t[..., start : start + i]
            start += i
            left = F.pad(F.sqrt(F.cumprod(1 - F.square(own), -1)), (1, 0), value=1.0)
            rows.append(F.pad(F.pad(own, (0, 1), value=1.0) * left, (0, n - 1 - i)))
        return F.stack(rows, -2)

    def _inverse(self, y: Any) -> Any:
        parts = []
        for i in range(1, y.shape[-1]):
            row = y[..., i, :i]
            left = 1 - F.pad(F.cumsum(F.square(row), -1), (1, 0))[..., :-1]
            parts.append(F.atanh(row / F.sqrt(left)))
        return F.cat(parts, -1)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Logarithms of what the rows have left, and of the derivative of tanh."""
        n = self._rows(x.shape[-1])
        if tuple(y.shape[-2:]) != (n, n):
            raise ShapeError(f"the result for {n * (n - 1) // 2} numbers is a {n}x{n} matrix, not {tuple(y.shape)}")
        terms = F.sum(TanhTransform().log_abs_det_jacobian(x, None), -1)
        for i in range(2, n):
            left = 1 - F.cumsum(F.square(y[..., i, : i - 1]), -1)
            terms = terms + 0.5 * F.sum(F.log(left), -1)
        return terms

    def forward_shape(self, shape: Any) -> Any:
        """A matrix."""
        if len(members(shape, "forward_shape", "shape")) < 1:
            raise ArgumentError("Too few dimensions on input")
        n = self._rows(shape[-1])
        return (*shape[:-1], n, n)

    def inverse_shape(self, shape: Any) -> Any:
        """A vector."""
        if len(members(shape, "forward_shape", "shape")) < 2:
            raise ArgumentError("Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ArgumentError("Input is not square")
        return (*shape[:-2], shape[-1] * (shape[-1] - 1) // 2)


class _Joined(Transform):
    """Functions of the parts of a dimension.

    Parameters
    ----------
    tseq : the functions.
    dim : the dimension.
    """

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        given = members(tseq, type(self).__name__, "tseq")
        self.transforms, self.dim = [t.with_cache(cache_size) for t in given] if cache_size else given, dim

    bijective = property(lambda self: all(t.bijective for t in self.transforms))

    def _split(self, x: Any) -> list[Any]:
        raise NotDefinedError(f"{type(self).__name__} has no parts")

    def _join(self, parts: list[Any]) -> Any:
        raise NotDefinedError(f"{type(self).__name__} has no parts")

    def _call(self, x: Any) -> Any:
        return self._join([t(v) for t, v in zip(self.transforms, self._split(x), strict=True)])

    def _inverse(self, y: Any) -> Any:
        return self._join([t.inv(v) for t, v in zip(self.transforms, self._split(y), strict=True)])


class StackTransform(_Joined):
    """Functions of the slices along a dimension.

    Parameters
    ----------
    tseq : the functions, one for each slice.
    dim : the dimension.
    """

    def _split(self, x: Any) -> list[Any]:
        if x.shape[self.dim] != len(self.transforms):
            raise ArgumentError(f"{len(self.transforms)} transforms do not fit dimension {self.dim} of {x.shape}")
        return [F.select(x, self.dim, i) for i in range(len(self.transforms))]

    def _join(self, parts: list[Any]) -> Any:
        return F.stack(parts, self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The determinants of the slices, stacked."""
        pairs = zip(self.transforms, self._split(x), self._split(y), strict=True)
        return F.stack([t.log_abs_det_jacobian(a, b) for t, a, b in pairs], self.dim)

    @constraints.dependent_property
    def domain(self) -> Any:
        """Constraint of operands."""
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Any:
        """Constraint of results."""
        return constraints.stack([t.codomain for t in self.transforms], self.dim)


class CatTransform(_Joined):
    """Functions of parts of a dimension.

    Parameters
    ----------
    tseq : the functions.
    dim : the dimension.
    lengths : sizes of the parts, by default 1 each.
    """

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise ArgumentError(f"{len(self.lengths)} lengths do not fit {len(self.transforms)} transforms")

    length = property(lambda self: sum(self.lengths))
    event_dim = property(lambda self: max(t.event_dim for t in self.transforms))

    def _split(self, x: Any) -> list[Any]:
        if x.shape[self.dim] != self.length:
            raise ArgumentError(f"lengths {self.lengths} do not fit dimension {self.dim} of {tuple(x.shape)}")
        return list(F.split(x, self.lengths, self.dim))

    def _join(self, parts: list[Any]) -> Any:
        return F.cat(parts, self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The determinants of the parts, joined; or their sum, where the dimension belongs to one operand."""
        terms = []
        for t, a, b in zip(self.transforms, self._split(x), self._split(y), strict=True):
            terms.append(sum_rightmost(t.log_abs_det_jacobian(a, b), self.event_dim - t.event_dim))
        dim = self.dim - x.ndim if self.dim >= 0 else self.dim
        dim += self.event_dim
        return F.cat(terms, dim) if dim < 0 else sum(terms[1:], terms[0])

    @constraints.dependent_property
    def domain(self) -> Any:
        """Constraint of operands."""
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Any:
        """Constraint of results."""
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)
