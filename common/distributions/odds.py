"""Probabilities and logits: one is given, the other follows from it."""

from __future__ import annotations

from typing import Any

from common.core.errors import ArgumentError
from common.distributions.distribution import limits, one_dtype
from common.distributions.implied import Implied
from common.ops import functional as F


def clamp_probs(probs: Any) -> Any:
    """Probabilities in [eps, 1 - eps]."""
    eps = float(limits(probs).eps)
    return F.clamp(probs, eps, 1 - eps)


def probs_to_logits(probs: Any, is_binary: bool = False) -> Any:
    """Logarithms of odds, or of probabilities.

    Parameters
    ----------
    probs : (...) probabilities; the classes are the last dimension, unless `is_binary`.
    is_binary : whether each element is the probability of one of two classes.
    """
    limited = clamp_probs(probs)
    return F.log(limited) - F.log1p(-limited) if is_binary else F.log(limited)


def logits_to_probs(logits: Any, is_binary: bool = False) -> Any:
    """Probabilities; see `probs_to_logits`."""
    return F.sigmoid(logits) if is_binary else F.softmax(logits, -1)


class Odds:
    """One of `probs` and `logits`, as an attribute; the other is computed."""

    _binary = True

    @Implied
    def probs(self) -> Any:
        """The probabilities."""
        return logits_to_probs(self.__dict__["logits"], self._binary)

    @Implied
    def logits(self) -> Any:
        """The logarithms of the odds, or of the probabilities."""
        return probs_to_logits(self.__dict__["probs"], self._binary)

    @property
    def _given(self) -> Any:
        return self.__dict__["logits"] if "logits" in self.__dict__ else self.__dict__["probs"]

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter that was given."""
        return self._given.shape


def one_of(probs: Any, logits: Any) -> dict[str, Any]:
    """The one that is given, by its name.

    Raises
    ------
    ArgumentError : both are, or none is.
    """
    if (probs is None) == (logits is None):
        raise ArgumentError("Either `probs` or `logits` must be specified, but not both.")
    return {"probs": one_dtype(probs)[0]} if logits is None else {"logits": one_dtype(logits)[0]}
