"""Draws of counts, and of the gamma and beta distributions: quantiles at the numbers of `rand`, in float64.

Element i is a function of its parameters and of element i of a uniform draw, so these belong to the stream of the
generator as the others do, in a trace and under `vmap` too.
"""

from __future__ import annotations

from typing import Any

from common.core import mode
from common.core.dtypes import float64
from common.core.errors import DTypeError
from common.core.op import REGISTRY, Op
from common.ops import functional as F
from common.ops.random import quantile_draws
from common.random.draw_counts import constant_in, drawn_by
from common.random.generator import Generator, draw
from common.tensor.create import lift

assert quantile_draws  # defines the ops


def by_quantile(name: str, shape: Any, *operands: Any, generator: Generator | None = None, u: Any = None) -> Any:
    """A draw of a shape by the op `name`, of operands that broadcast to the shape, in the first one's dtype.

    Parameters
    ----------
    u : the uniform numbers, float64, of that shape; drawn if None.
    """
    op: Op = REGISTRY[name]
    shape = tuple(shape)
    u = lift(draw("rand", shape, float64, generator)) if u is None else u
    wide = [F.broadcast_to(x.to(float64), shape) for x in operands]
    return op(*wide, u).to(operands[0].dtype)


def poisson(x: Any, generator: Generator | None = None) -> Any:
    """Draw counts from Poisson distributions, in the shape and dtype of a tensor; their derivative is zero.

    Parameters
    ----------
    x : (...), floating point: the rates.
    generator : where from; the default generator if None.

    Raises
    ------
    DTypeError : `x` is not floating point.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.poisson(tw.tensor([0.0, 4.0])).shape
    torch.Size([2])
    """
    if x.dtype.kind != "f":
        raise DTypeError(f"poisson(): expected a floating point tensor of rates, got {x.dtype}")
    drawn_by(x)
    with mode.no_grad():
        drawn = by_quantile("poisson_quantile", x.shape, x, generator=generator)
    return constant_in(drawn, x)


def binomial(count: Any, prob: Any, generator: Generator | None = None) -> Any:
    """Draw numbers of successes, in the shape of two tensors that broadcast; they have no gradient.

    Parameters
    ----------
    count : (...), floating point: numbers of trials.
    prob : (...), the probability of a success.
    generator : where from; the default generator if None.

    Raises
    ------
    DTypeError : one of them is not floating point.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.binomial(tw.tensor([3.0, 5.0]), tw.tensor([1.0, 0.0]))
    tensor([3., 0.])
    """
    for x in (count, prob):
        if x.dtype.kind != "f":
            raise DTypeError(f"binomial only supports floating-point dtypes for count and prob, got: {x.dtype}")
    drawn_by(count, prob)
    with mode.no_grad():
        shape = tuple(F.broadcast_tensors(count, prob)[0].shape)
        return by_quantile("binomial_quantile", shape, count, prob, generator=generator)


__all__ = ["binomial", "poisson"]
