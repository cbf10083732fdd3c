"""Functions that draw numbers and have gradients: the Gumbel softmax, the leaky relu of random slopes."""

from __future__ import annotations

from typing import Any

from common.core.dtypes import refuse
from common.core.errors import ArgumentError
from common.ops import functional as F
from common.random.generator import rand_like


def gumbel_softmax(x: Any, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Any:
    """softmax((x + g) / tau), where g = -log(-log(u)) with u from [0, 1): a soft draw of a class.

    Parameters
    ----------
    x : (...) logits, floating point.
    tau : temperature, not 0.
    hard : whether the result is 1 at the class and 0 elsewhere, with the gradient of the soft one.
    eps : accepted; no number is too small for the logarithms.
    dim : the dimension of the classes.

    References
    ----------
    Jang and others, Categorical reparameterization with Gumbel-softmax, 2017; Maddison and others, The concrete
    distribution, 2017.
    """
    soft = F.softmax((x - F.log(-F.log(rand_like(x)))) / tau, dim)
    if not hard:
        return soft
    best = F.argmax(soft, dim, True)
    return F.scatter(F.zeros_like(soft), dim, best, 1.0) - soft.detach() + soft


def rrelu(x: Any, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False) -> Any:
    """x where x > 0, else x times a slope from [lower, upper), drawn per element in training, their mean otherwise.

    Parameters
    ----------
    x : (...), floating point.
    lower, upper : bounds of the slope.
    training : whether slopes are drawn.

    Raises
    ------
    ArgumentError : `lower` is above `upper`.
    DTypeError : `x` is of bools or ints.

    References
    ----------
    Xu and others, Empirical evaluation of rectified activations in convolutional network, 2015.
    """
    if not lower <= upper:
        raise ArgumentError(f"Lower bound should be less than or equal to the upper bound, got {lower} and {upper}")
    refuse("rrelu", x)
    slope = rand_like(x) * (upper - lower) + lower if training else (lower + upper) / 2
    return F.where(x > 0, x, x * slope)
