"""Distributions of correlation and covariance matrices."""

from __future__ import annotations

import math
from typing import Any

from common.core.errors import ArgumentError
from common.core.shapes import broadcast_shapes
from common.distributions import constraints
from common.distributions.distribution import (
    Distribution,
    ExponentialFamily,
    Shape,
    every,
    gamma,
    known,
    limits,
    normal,
    one_dtype,
    whole_numbers,
)
from common.distributions.gaussian_vectors import OfMatrix, gram, half_logdet
from common.ops import functional as F
from common.ops.linalg import factorizations, solving
from common.random.counts import by_quantile


class LKJCholesky(Distribution):
    """Cholesky factors of correlation matrices, with densities in the power of the matrix's determinant.

    Parameters
    ----------
    dim : rows, at least 2.
    concentration : the power plus 1; where it is 1, all correlation matrices are equally likely.

    References
    ----------
    Lewandowski, Kurowicka, Joe: Generating random correlation matrices based on vines and extended onion method. 2009.
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if not isinstance(dim, int) or dim < 2:
            raise ArgumentError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = one_dtype(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    def _family_draw(self, shape: Shape) -> Any:
        n, c = self.dim, F.unsqueeze(self.concentration, -1)
        k = whole_numbers(n - 1, c.dtype) + 1
        square = by_quantile("beta_quantile", (*shape[:-2], n - 1), k / 2 + c * 0, c + (n - 1 - k) / 2)
        z = F.tril(normal(shape, c.dtype), -1)[..., 1:, :]
        z = z / F.sqrt(F.sum(F.square(z), -1, True)) * F.unsqueeze(F.sqrt(square), -1)
        lower = F.pad(z, (0, 0, 1, 0))
        left = F.clamp(1 - F.sum(F.square(lower), -1), min=float(limits(c).tiny))
        return lower + F.diag_embed(F.sqrt(left))

    def _family_log_prob(self, value: Any) -> Any:
        n, c = self.dim, self.concentration
        order = whole_numbers(n - 1, c.dtype) + 2
        powers = 2 * (F.unsqueeze(c, -1) - 1) + n - order
        density = F.sum(powers * F.log(F.diagonal(value, 0, -2, -1)[..., 1:]), -1)
        alpha = c + 0.5 * (n - 1)
        scale = 0.5 * (n - 1) * math.log(math.pi) + F.mvlgamma(alpha - 0.5, n - 1) - F.lgamma(alpha) * (n - 1)
        return density - scale


class Wishart(OfMatrix, ExponentialFamily):
    """Sums of outer products of normal vectors of mean 0.

    Parameters
    ----------
    df : how many, above the number of rows less 1.
    covariance_matrix, precision_matrix, scale_tril : (..., n, n), one of them: that of the vectors, its inverse, its
        lower Cholesky factor.

    Raises
    ------
    ArgumentError : not one of the three; too small a `df`; dimensions that do not fit.
    """

    arg_constraints = {
        "df": constraints.positive, "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky,
    }  # fmt: skip
    support = constraints.positive_definite
    has_rsample = True

    def __init__(
        self, df: Any, covariance_matrix: Any = None, precision_matrix: Any = None, scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        name, given = self._one_matrix({
            "covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril,
        })  # fmt: skip
        given, df = one_dtype(given, df)
        n = given.shape[-1]
        shape = broadcast_shapes(given.shape[:-2], df.shape, op="Wishart")
        self.df, self.__dict__[name] = df.expand(*shape), given.expand(*shape, -1, -1)
        if known(df) and not every(df > n - 1):
            raise ArgumentError(f"Value of df={df} expected to be greater than ndim - 1 = {n - 1}.")
        super().__init__(shape, (n, n), validate_args)
        self._factor = self._factored(name, given)

    def _halves(self) -> Any:
        n = self.event_shape[0]
        return F.unsqueeze(self.df, -1) / 2 - whole_numbers(n, self.df.dtype) / 2

    def _family_draw(self, shape: Shape) -> Any:
        """Bartlett's decomposition."""
        diagonal = F.sqrt(2 * gamma(shape[:-1], self._halves()))
        z = F.tril(normal(shape, self.df.dtype), -1) + F.diag_embed(diagonal)
        return gram(F.matmul(self._factor, z))

    def _family_log_prob(self, value: Any) -> Any:
        nu, n = self.df, self.event_shape[0]
        factor = factorizations.cholesky(value)
        lead = broadcast_shapes(self._factor.shape[:-2], value.shape[:-2], op="log_prob")
        own = F.broadcast_to(self._factor, (*lead, n, n))
        ratio = solving.solve_triangular(own, F.broadcast_to(factor, (*lead, n, n)), upper=False)
        scale = nu * (n * math.log(2) / 2 + half_logdet(self._factor)) + F.mvlgamma(nu / 2, n)
        return (nu - n - 1) * half_logdet(factor) - 0.5 * F.sum(F.square(ratio), (-2, -1)) - scale

    def _family_entropy(self) -> Any:
        nu, n = self.df, self.event_shape[0]
        inner = (n + 1) * (half_logdet(self._factor) + n * math.log(2) / 2) + F.mvlgamma(nu / 2, n)
        return inner - 0.5 * (nu - n - 1) * F.sum(F.digamma(self._halves()), -1) + 0.5 * nu * n

    def _scaled(self, count: Any) -> Any:
        return F.reshape(count, (*count.shape, 1, 1)) * self.covariance_matrix

    def _family_mean(self) -> Any:
        return self._scaled(self.df)

    def _family_mode(self) -> Any:
        count = self.df - self.event_shape[0] - 1
        return self._scaled(F.where(count > 0, count, math.nan))

    def _family_variance(self) -> Any:
        v = self.covariance_matrix
        diagonal = F.diagonal(v, 0, -2, -1)
        outer = F.unsqueeze(diagonal, -1) * F.unsqueeze(diagonal, -2)
        return F.reshape(self.df, (*self.df.shape, 1, 1)) * (F.square(v) + outer)
