"""Families of counts."""

from __future__ import annotations

import math
from typing import Any

from common.core.errors import ArgumentError, NotDefinedError
from common.distributions import constraints
from common.distributions.distribution import (
    Distribution,
    ExponentialFamily,
    Shape,
    every,
    gamma,
    known,
    uniform,
    whole_numbers,
)
from common.distributions.odds import Odds, one_of
from common.ops import functional as F
from common.ops.math.special_functions import xlog1py
from common.random.counts import by_quantile
from common.random.generator import draw
from common.tensor.create import lift


class Bernoulli(Odds, ExponentialFamily):
    """Ones with a probability, else zeros.

    Parameters
    ----------
    probs, logits : the probability, or the logarithm of its odds; one of them.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._hold(validate_args, **one_of(probs, logits))

    def _family_draw(self, shape: Shape) -> Any:
        return (lift(draw("rand", shape, self.probs.dtype, None)) < self.probs).to(self.probs.dtype)

    def _family_log_prob(self, value: Any) -> Any:
        return value * F.logsigmoid(self.logits) + (1 - value) * F.logsigmoid(-self.logits)

    def _family_entropy(self) -> Any:
        return -self.probs * F.logsigmoid(self.logits) - (1 - self.probs) * F.logsigmoid(-self.logits)

    def _family_values(self) -> Any:
        return whole_numbers(2, self._given.dtype)

    def _family_mean(self) -> Any:
        return self.probs

    def _family_mode(self) -> Any:
        p = self.probs
        return F.where(p == 0.5, math.nan, (p >= 0.5).to(p.dtype))

    def _family_variance(self) -> Any:
        return self.probs * (1 - self.probs)


class Geometric(Odds, Distribution):
    """Failures before the first success.

    Parameters
    ----------
    probs, logits : the probability of a success, or the logarithm of its odds; one of them.

    Raises
    ------
    ArgumentError : a probability of 0.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._hold(validate_args, **one_of(probs, logits))
        if self._validate_args and probs is not None and known(self.probs) and not every(self.probs > 0):
            raise ArgumentError(
                f"Expected parameter probs (Tensor of shape {tuple(self.probs.shape)}) of distribution {self!r} to be "
                f"positive but found invalid values:\n{self.probs}"
            )

    def _family_draw(self, shape: Shape) -> Any:
        return F.floor(F.log(uniform(shape, self.probs.dtype)) / F.log1p(-self.probs))

    def _family_log_prob(self, value: Any) -> Any:
        return xlog1py(value, -self.probs) + F.log(self.probs)

    def _family_entropy(self) -> Any:
        p, logits = self.probs, self.logits
        return -F.logsigmoid(logits) - (1 / p - 1) * F.logsigmoid(-logits)

    def _family_mean(self) -> Any:
        return 1 / self.probs - 1

    def _family_mode(self) -> Any:
        return F.zeros_like(self.probs)

    def _family_variance(self) -> Any:
        return (1 / self.probs - 1) / self.probs


class Poisson(ExponentialFamily):
    """Poisson distributions.

    Parameters
    ----------
    rate : the mean.
    """

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        self._hold(validate_args, rate=rate)

    def _family_draw(self, shape: Shape) -> Any:
        return by_quantile("poisson_quantile", shape, self.rate)

    def _family_log_prob(self, value: Any) -> Any:
        return F.xlogy(value, self.rate) - self.rate - F.lgamma(value + 1)

    def _family_mean(self) -> Any:
        return self.rate

    def _family_mode(self) -> Any:
        return F.floor(self.rate)

    def _family_variance(self) -> Any:
        return self.rate


class Binomial(Odds, Distribution):
    """Successes among trials.

    Parameters
    ----------
    total_count : numbers of trials.
    probs, logits : the probability of a success, or the logarithm of its odds; one of them.
    """

    arg_constraints = {
        "total_count": constraints.nonnegative_integer, "probs": constraints.unit_interval, "logits": constraints.real,
    }  # fmt: skip
    has_enumerate_support = True

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        given = one_of(probs, logits)
        if not hasattr(total_count, "shape"):
            total_count = F.full_like(next(iter(given.values())), total_count)
        self._hold(validate_args, total_count=total_count, **given)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        """From 0 to the number of trials."""
        return constraints.integer_interval(0, self.total_count)

    def _family_draw(self, shape: Shape) -> Any:
        return by_quantile("binomial_quantile", shape, self.total_count, self.probs)

    def _family_log_prob(self, value: Any) -> Any:
        n, logits = self.total_count, self.logits
        choices = F.lgamma(n + 1) - F.lgamma(value + 1) - F.lgamma(n - value + 1)
        return choices + value * logits + n * F.logsigmoid(-logits)

    def _family_entropy(self) -> Any:
        log_probs = self._family_log_prob(self.enumerate_support(False))
        return -F.sum(F.exp(log_probs) * log_probs, 0)

    def _family_values(self) -> Any:
        n = self.total_count
        if not known(n):
            raise NotDefinedError("Binomial: how many values there are is not known in a trace")
        if n.numel() == 0 or not every(n == F.amax(n)):
            raise NotDefinedError("Inhomogeneous total count not supported by `enumerate_support`.")
        return whole_numbers(1 + int(F.amax(n).item()), n.dtype)

    def _family_mean(self) -> Any:
        return self.total_count * self.probs

    def _family_mode(self) -> Any:
        return F.minimum(F.floor((self.total_count + 1) * self.probs), self.total_count)

    def _family_variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)


class NegativeBinomial(Odds, Distribution):
    """Successes before a number of failures.

    Parameters
    ----------
    total_count : numbers of failures, positive.
    probs, logits : the probability of a success, or the logarithm of its odds; one of them.
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0), "probs": constraints.open_unit, "logits": constraints.real,
    }  # fmt: skip
    support = constraints.nonnegative_integer

    def __init__(
        self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        given = one_of(probs, logits)
        if not hasattr(total_count, "shape"):
            total_count = F.full_like(next(iter(given.values())), total_count)
        self._hold(validate_args, total_count=total_count, **given)

    def _odds(self) -> Any:
        return F.exp(self.logits)

    def _family_draw(self, shape: Shape) -> Any:
        return by_quantile("poisson_quantile", shape, gamma(shape, self.total_count) * self._odds())

    def _family_log_prob(self, value: Any) -> Any:
        n = self.total_count
        choices = F.lgamma(value + n) - F.lgamma(value + 1) - F.lgamma(n)
        inner = n * F.logsigmoid(-self.logits) + value * F.logsigmoid(self.logits)
        return inner + F.where(value + n == 0, F.zeros_like(choices), choices)

    def _family_mean(self) -> Any:
        return self.total_count * self._odds()

    def _family_mode(self) -> Any:
        return F.clamp(F.floor((self.total_count - 1) * self._odds()), min=0)

    def _family_variance(self) -> Any:
        return self._family_mean() / F.sigmoid(-self.logits)
