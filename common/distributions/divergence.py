"""The Kullback-Leibler divergence of distributions of one family."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from common.core.errors import NotDefinedError
from common.distributions.discrete import Bernoulli, Categorical
from common.distributions.families import Exponential, Laplace, Normal
from common.ops import functional as F


def _normal(p: Any, q: Any) -> Any:
    ratio, apart = F.square(p.scale / q.scale), F.square((p.loc - q.loc) / q.scale)
    return 0.5 * (ratio + apart - 1 - F.log(ratio))


def _exponential(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return ratio - F.log(ratio) - 1


def _laplace(p: Any, q: Any) -> Any:
    ratio, apart = p.scale / q.scale, F.abs(p.loc - q.loc)
    return -F.log(ratio) + apart / q.scale + ratio * F.exp(-apart / p.scale) - 1


def _bernoulli(p: Any, q: Any) -> Any:
    ones = F.logsigmoid(p.logits) - F.logsigmoid(q.logits)
    zeros = F.logsigmoid(-p.logits) - F.logsigmoid(-q.logits)
    return p.probs * ones + (1 - p.probs) * zeros


_RULES: dict[type, Callable[[Any, Any], Any]] = {
    Normal: _normal, Exponential: _exponential, Laplace: _laplace, Bernoulli: _bernoulli,
    Categorical: lambda p, q: F.sum(p.probs * (p.logits - q.logits), -1),
}  # fmt: skip


def kl_divergence(p: Any, q: Any) -> Any:
    """The mean under p of the logarithm of p's density over q's.

    Parameters
    ----------
    p, q : distributions of one family.

    Raises
    ------
    NotDefinedError : no formula for the two is known.
    """
    rule = _RULES.get(type(p))
    if rule is None or type(q) is not type(p):
        raise NotDefinedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}"
        )
    return rule(p, q)
