"""Discrete families, and distributions with several dimensions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from common.core import mode
from common.core.errors import ArgumentError
from common.distributions import constraints
from common.distributions.families import Distribution, parameters
from common.ops import functional as F
from common.ops.linalg import factorizations, solving
from common.random.generator import draw
from common.random.sampling import multinomial
from common.tensor.create import lift


def _one_of(probs: Any, logits: Any) -> None:
    if (probs is None) == (logits is None):
        raise ArgumentError("Either `probs` or `logits` must be specified, but not both.")


class Bernoulli(Distribution):
    """Ones with a probability, else zeros.

    Parameters
    ----------
    probs, logits : the probability, or the logarithm of its odds; one of them.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        _one_of(probs, logits)
        (given,) = parameters(logits if probs is None else probs)
        if probs is None:
            self.logits, self.probs = given, F.sigmoid(given)
        else:
            self.probs = given
            limited = F.clamp(given, float(np.finfo(given.dtype).eps), 1 - float(np.finfo(given.dtype).eps))
            self.logits = F.log(limited) - F.log1p(-limited)
        super().__init__(given.shape, (), validate_args)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw, without a gradient."""
        with mode.no_grad():
            u = lift(draw("rand", self._extended(sample_shape), self.probs.dtype, None))
            return (u < self.probs).to(self.probs.dtype)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability."""
        value = self._checked(value)
        return value * F.logsigmoid(self.logits) + (1 - value) * F.logsigmoid(-self.logits)

    def entropy(self) -> Any:
        """The entropy."""
        return -self.probs * F.logsigmoid(self.logits) - (1 - self.probs) * F.logsigmoid(-self.logits)

    @property
    def mean(self) -> Any:
        """The mean."""
        return self.probs

    @property
    def variance(self) -> Any:
        """The variance."""
        return self.probs * (1 - self.probs)


class Categorical(Distribution):
    """Indices with probabilities.

    Parameters
    ----------
    probs, logits : (..., n) weights, or logarithms of them; one of them.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        _one_of(probs, logits)
        (given,) = parameters(logits if probs is None else probs)
        if given.ndim < 1:
            raise ArgumentError(
                f"`{'logits' if probs is None else 'probs'}` parameter must be at least one-dimensional."
            )
        if probs is None:
            self.logits = given - F.logsumexp(given, -1, True)
            self.probs = F.softmax(self.logits, -1)
        else:
            self.probs = given / F.sum(given, -1, True)
            limited = F.clamp(self.probs, float(np.finfo(given.dtype).eps), 1 - float(np.finfo(given.dtype).eps))
            self.logits = F.log(limited)
        self.support = constraints.integer_interval(0, given.shape[-1] - 1)
        super().__init__(given.shape[:-1], (), validate_args)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw, without a gradient."""
        shape = self._extended(sample_shape)
        count = math.prod(tuple(sample_shape))
        with mode.no_grad():
            rows = F.reshape(self.probs, (-1, self.probs.shape[-1]))
            return F.reshape(F.transpose(multinomial(rows, count, True), 0, 1), shape)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability."""
        value = value.to(np.dtype(np.int64)) if hasattr(value, "to") else lift(np.asarray(value, np.int64))
        index, logits = F.broadcast_tensors(F.unsqueeze(self._checked(value), -1), self.logits)
        return F.select(F.gather(logits, -1, F.narrow(index, -1, 0, 1)), -1, 0)

    def entropy(self) -> Any:
        """The entropy."""
        return -F.sum(F.clamp(self.logits, min=float(np.finfo(self.logits.dtype).min)) * self.probs, -1)


class MultivariateNormal(Distribution):
    """Normal distributions of vectors.

    Parameters
    ----------
    loc : (..., n), the mean.
    covariance_matrix, scale_tril : (..., n, n), one of them; the second is the lower Cholesky factor.
    """

    arg_constraints = {"loc": constraints.real_vector, "scale_tril": constraints.lower_cholesky}
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, loc: Any, covariance_matrix: Any = None, scale_tril: Any = None, validate_args: bool | None = None
    ) -> None:
        if (covariance_matrix is None) == (scale_tril is None):
            raise ArgumentError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        self.loc = loc
        self.scale_tril = factorizations.cholesky(covariance_matrix) if scale_tril is None else scale_tril
        super().__init__(loc.shape[:-1], loc.shape[-1:], validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw so that gradients reach the parameters."""
        z = lift(draw("randn", self._extended(sample_shape), self.loc.dtype, None))
        return self.loc + F.squeeze(F.matmul(self.scale_tril, F.unsqueeze(z, -1)), -1)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        rest = F.unsqueeze(self._checked(value) - self.loc, -1)
        z = solving.solve_triangular(self.scale_tril, rest, upper=False)
        n = self.event_shape[0]
        return -0.5 * (n * math.log(2 * math.pi) + F.sum(z * z, (-2, -1))) - self._half_logdet()

    def _half_logdet(self) -> Any:
        return F.sum(F.log(F.diagonal(self.scale_tril, 0, -2, -1)), -1)

    def entropy(self) -> Any:
        """The differential entropy."""
        return 0.5 * self.event_shape[0] * (1 + math.log(2 * math.pi)) + self._half_logdet()

    @property
    def mean(self) -> Any:
        """The mean."""
        return self.loc

    @property
    def covariance_matrix(self) -> Any:
        """The covariance of components."""
        return F.matmul(self.scale_tril, F.transpose(self.scale_tril, -2, -1))

    @property
    def variance(self) -> Any:
        """The variance of each component."""
        return F.sum(F.square(self.scale_tril), -1)
