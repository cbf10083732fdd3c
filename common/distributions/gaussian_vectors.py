"""Normal distributions of vectors."""

from __future__ import annotations

import math
from typing import Any

from common.core.errors import ArgumentError
from common.core.shapes import broadcast_shapes
from common.distributions import constraints
from common.distributions.distribution import Distribution, Shape, identity, normal, one_dtype
from common.distributions.implied import Implied
from common.ops import functional as F
from common.ops.linalg import factorizations, solving


def solve_lower(factor: Any, x: Any) -> Any:
    """``factor^-1 x`` for vectors in the last dimension, of batches that broadcast."""
    shape = broadcast_shapes(factor.shape[:-2], x.shape[:-1], op="solve_triangular")
    n = x.shape[-1]
    if len(shape) > factor.ndim - 2:  # many vectors for one factor: they are columns
        lead = len(shape) - (factor.ndim - 2)
        rows = F.broadcast_to(x, (*shape, n))
        flat = F.reshape(rows, (-1, *shape[lead:], n))
        columns = F.movedim(flat, 0, -1)
        y = solving.solve_triangular(F.broadcast_to(factor, (*shape[lead:], n, n)), columns, upper=False)
        return F.reshape(F.movedim(y, -1, 0), (*shape, n))
    rows = F.broadcast_to(x, (*shape, n))
    y = solving.solve_triangular(F.broadcast_to(factor, (*shape, n, n)), F.unsqueeze(rows, -1), upper=False)
    return F.squeeze(y, -1)


def factor_of_inverse(matrix: Any) -> Any:
    """The lower Cholesky factor of the inverse."""
    upside = F.flip(factorizations.cholesky(F.flip(matrix, (-2, -1))), (-2, -1))
    n = matrix.shape[-1]
    unit = F.broadcast_to(identity(n, matrix.dtype), tuple(matrix.shape))
    return solving.solve_triangular(F.transpose(upside, -2, -1), unit, upper=False)


def half_logdet(factor: Any) -> Any:
    """Half the logarithm of the determinant of ``factor factor^T``."""
    return F.sum(F.log(F.diagonal(factor, 0, -2, -1)), -1)


def gram(factor: Any) -> Any:
    """``factor factor^T``."""
    return F.matmul(factor, F.transpose(factor, -2, -1))


class OfMatrix:
    """A matrix by its lower Cholesky factor `_factor`; three forms, of which the given one is an attribute."""

    _factor: Any
    _batch_shape: Any

    @Implied
    def scale_tril(self) -> Any:
        """The lower Cholesky factor."""
        return self._of_batch(self._factor)

    @Implied
    def covariance_matrix(self) -> Any:
        """The matrix."""
        return self._of_batch(gram(self._factor))

    @Implied
    def precision_matrix(self) -> Any:
        """Its inverse."""
        return self._of_batch(factorizations.cholesky_inverse(self._factor))

    def _of_batch(self, x: Any) -> Any:
        """A matrix for each distribution of the batch."""
        shape = (*self._batch_shape, *x.shape[-2:])
        return x if tuple(x.shape) == shape else F.broadcast_to(x, shape)

    @staticmethod
    def _one_matrix(given: dict[str, Any], what: str = "Exactly") -> tuple[str, Any]:
        found = [(name, x) for name, x in given.items() if x is not None]
        if len(found) != 1:
            raise ArgumentError(f"{what} one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        name, x = found[0]
        if x.ndim < 2:
            raise ArgumentError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
        return name, x

    @staticmethod
    def _factored(name: str, x: Any) -> Any:
        if name == "scale_tril":
            return x
        return factorizations.cholesky(x) if name == "covariance_matrix" else factor_of_inverse(x)


class MultivariateNormal(OfMatrix, Distribution):
    """Normal distributions of vectors.

    Parameters
    ----------
    loc : (..., n), the mean.
    covariance_matrix, precision_matrix, scale_tril : (..., n, n), one of them; the second is the inverse of the first,
        the third its lower Cholesky factor.

    Raises
    ------
    ArgumentError : not one of the three; dimensions that do not fit.
    """

    arg_constraints = {
        "loc": constraints.real_vector, "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky,
    }  # fmt: skip
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, loc: Any, covariance_matrix: Any = None, precision_matrix: Any = None, scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        (loc,) = one_dtype(loc)
        if loc.ndim < 1:
            raise ArgumentError("loc must be at least one-dimensional.")
        name, given = self._one_matrix({
            "covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril,
        })  # fmt: skip
        loc, given = one_dtype(loc, given)
        shape = broadcast_shapes(given.shape[:-2], loc.shape[:-1], op="MultivariateNormal")
        self.loc = loc.expand(*shape, -1)
        self.__dict__[name] = given.expand(*shape, -1, -1)
        super().__init__(shape, loc.shape[-1:], validate_args)
        self._factor = self._factored(name, given)

    def _family_draw(self, shape: Shape) -> Any:
        z = normal(shape, self.loc.dtype)
        return self.loc + F.squeeze(F.matmul(self._factor, F.unsqueeze(z, -1)), -1)

    def _family_log_prob(self, value: Any) -> Any:
        z = solve_lower(self._factor, value - self.loc)
        return -0.5 * (self.event_shape[0] * math.log(2 * math.pi) + F.sum(z * z, -1)) - half_logdet(self._factor)

    def _family_entropy(self) -> Any:
        inner = 0.5 * self.event_shape[0] * (1 + math.log(2 * math.pi)) + half_logdet(self._factor)
        return F.broadcast_to(inner, tuple(self.batch_shape))

    def _family_mean(self) -> Any:
        return self.loc

    def _family_mode(self) -> Any:
        return self.loc

    def _family_variance(self) -> Any:
        return F.broadcast_to(F.sum(F.square(self._factor), -1), (*self.batch_shape, *self.event_shape))


class LowRankMultivariateNormal(Distribution):
    """Normal distributions of vectors whose covariance is ``W W^T + diag(d)``.

    Parameters
    ----------
    loc : (..., n), the mean.
    cov_factor : (..., n, r), W.
    cov_diag : (..., n), d, positive.

    Raises
    ------
    ArgumentError : dimensions that do not fit.

    Notes
    -----
    Densities and determinants are computed with matrices of r rows, by the identities of Woodbury and Sylvester.
    """

    arg_constraints = {
        "loc": constraints.real_vector, "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }  # fmt: skip
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Any, cov_factor: Any, cov_diag: Any, validate_args: bool | None = None) -> None:
        loc, factor, diag = one_dtype(loc, cov_factor, cov_diag)
        if loc.ndim < 1:
            raise ArgumentError("loc must be at least one-dimensional.")
        n = loc.shape[-1]
        if factor.ndim < 2:
            raise ArgumentError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        if factor.shape[-2] != n:
            raise ArgumentError(f"cov_factor must be a batch of matrices with shape {n} x m")
        if diag.ndim < 1 or diag.shape[-1] != n:
            raise ArgumentError(f"cov_diag must be a batch of vectors with shape {(n,)}")
        shape = broadcast_shapes(loc.shape[:-1], factor.shape[:-2], diag.shape[:-1], op="LowRankMultivariateNormal")
        self.loc, self.cov_diag = loc.expand(*shape, -1), diag.expand(*shape, -1)
        self.cov_factor = factor.expand(*shape, -1, -1)
        super().__init__(shape, (n,), validate_args)

    def _capacitance(self) -> Any:
        """The lower Cholesky factor of ``I + W^T diag(d)^-1 W``."""
        w = self.cov_factor
        inner = F.matmul(F.transpose(w, -2, -1), w / F.unsqueeze(self.cov_diag, -1))
        return factorizations.cholesky(inner + identity(w.shape[-1], w.dtype))

    def mahalanobis(self, x: Any) -> Any:
        """``x^T covariance^-1 x``, for vectors in the last dimension."""
        scaled = x / self.cov_diag
        inner = F.squeeze(F.matmul(F.transpose(self.cov_factor, -2, -1), F.unsqueeze(scaled, -1)), -1)
        return F.sum(x * scaled, -1) - F.sum(F.square(solve_lower(self._capacitance(), inner)), -1)

    def logdet(self) -> Any:
        """The logarithm of the covariance's determinant."""
        return 2 * half_logdet(self._capacitance()) + F.sum(F.log(self.cov_diag), -1)

    @property
    def covariance_matrix(self) -> Any:
        """The covariance."""
        return gram(self.cov_factor) + F.diag_embed(self.cov_diag)

    @property
    def scale_tril(self) -> Any:
        """The lower Cholesky factor of the covariance."""
        return factorizations.cholesky(self.covariance_matrix)

    @property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance."""
        scaled = F.transpose(self.cov_factor / F.unsqueeze(self.cov_diag, -1), -2, -1)
        factor = self._capacitance()
        part = solving.solve_triangular(factor, scaled, upper=False)
        return F.diag_embed(1 / self.cov_diag) - F.matmul(F.transpose(part, -2, -1), part)

    def _family_draw(self, shape: Shape) -> Any:
        w = self.cov_factor
        z = normal((*shape[:-1], w.shape[-1]), w.dtype)
        own = normal(shape, w.dtype) * F.sqrt(self.cov_diag)
        return self.loc + F.squeeze(F.matmul(w, F.unsqueeze(z, -1)), -1) + own

    def _family_log_prob(self, value: Any) -> Any:
        inner = self.event_shape[0] * math.log(2 * math.pi) + self.logdet() + self.mahalanobis(value - self.loc)
        return -0.5 * inner

    def _family_entropy(self) -> Any:
        return 0.5 * (self.event_shape[0] * (1 + math.log(2 * math.pi)) + self.logdet())

    def _family_mean(self) -> Any:
        return self.loc

    def _family_mode(self) -> Any:
        return self.loc

    def _family_variance(self) -> Any:
        return F.sum(F.square(self.cov_factor), -1) + self.cov_diag
