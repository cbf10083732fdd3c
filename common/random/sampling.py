"""Draws from distributions made of uniform and normal numbers, which both engines therefore draw alike.

Every function takes what it needs from one generator, element by element in C order, and computes the rest with public
functions; none of them has a gradient. Parameters that are tensors are looked at, inside a trace when the program runs.
"""

from __future__ import annotations

import math
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from common.core import mode
from common.core.dtypes import default_float, float64, int64
from common.core.errors import ArgumentError, DTypeError, ShapeError
from common.core.int_arguments import integer
from common.core.shapes import broadcast_shapes, unrepeated
from common.methods.assign import assign
from common.random.draw_counts import constant_in, drawn_by
from common.random.generator import Generator, draw, integers, require_order
from common.tensor.base import TensorBase
from common.tensor.create import lift

__all__ = ["METHODS", "bernoulli", "multinomial", "normal"]


@cache
def _kernels(module: str) -> Any:
    """A module of kernels for draws, loaded by the first of them."""
    return import_module(f"common.random.{module}")


def normal(
    mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, dtype: Any = None, generator: Generator | None = None
) -> Any:
    """Draw from normal distributions: ``z std + mean``, where z are numbers of `randn`.

    Parameters
    ----------
    mean, std : numbers, or floating-point tensors of shapes that broadcast; std >= 0.
    size : a tuple of sizes, where `mean` and `std` are numbers; otherwise theirs is taken.
    dtype : where `mean` and `std` are numbers: float32 (default) or float64.
    generator : where from; the default generator if None.

    Returns
    -------
    tensor : a constant, whose derivatives with respect to `mean` and `std` are zero.

    Raises
    ------
    ArgumentError : a negative or NaN `std`; `size` beside a tensor, or none without.
    DTypeError : a tensor that is not floating point.

    Examples
    --------
    >>> import dynamic as tw
    >>> _ = tw.manual_seed(0)
    >>> tw.normal(mean=tw.tensor([10.0, 20.0]), std=0.5).shape
    torch.Size([2])
    """
    from common.ops.create.creation import known_sizes
    from common.tensor.arrays import dtype_or

    given = [lift(x) for x in (mean, std)]
    mean, std = (x.detach() if isinstance(x, TensorBase) else x for x in given)
    tensors = [x for x in (mean, std) if isinstance(x, TensorBase)]
    if len(tensors) == 2 and std.dtype.kind in "iu":
        tensors[1] = std = std.to(mean.dtype)
    if wrong := [x.dtype for x in tensors if x.dtype.kind != "f"]:
        raise DTypeError(f"normal(): expected floating point tensors, got {wrong[0]}")
    if bool(tensors) == (size is not None):
        told = " takes a size where mean and std are numbers" if size is None else ": a size cannot be given beside one"
        raise ArgumentError(f"normal(){told}")
    std = _looked_at(std, lambda x: x >= 0, "normal", "found std {}")
    drawn_by(*tensors)
    with mode.no_grad():
        if size is not None:
            shape = known_sizes((size,) if not isinstance(size, (tuple, list)) else tuple(size))
            wanted = dtype_or(dtype, default_float())
            if (made := _kernels("fills").drawn_normal(mean, std, shape, wanted, generator)) is not None:
                return made
        else:
            shape = broadcast_shapes(*(tuple(x.shape) for x in tensors))
            wanted = np.result_type(*(x.dtype for x in tensors))
        drawn = lift(draw("randn", shape, wanted, generator)) * std + mean
    return constant_in(drawn, *given)


def bernoulli(x: Any, p: float | None = None, *, generator: Generator | None = None) -> Any:
    """Draw ones with the probabilities that a tensor holds, else zeros; in its shape and dtype.

    Parameters
    ----------
    x : (...), floating point: probabilities. An element is 1 where that of `rand` is below it.
    p : one probability for all elements, in the place of those of `x`, which then may have any dtype.
    generator : where from; the default generator if None.

    Raises
    ------
    DTypeError : `x` is not floating point.
    ArgumentError : a probability outside [0, 1].
    """
    if p is not None:
        return bernoulli_(x.detach().clone(), p, generator=generator)
    if x.dtype.kind != "f":
        raise DTypeError(f"bernoulli(): expected a floating point tensor of probabilities, got {x.dtype}")
    x = _looked_at(x, lambda a: (a >= 0) & (a <= 1), "bernoulli", "got p={}")
    drawn_by(x)
    u = draw("rand", tuple(x.shape), x.dtype, generator)
    if type(u) is np.ndarray is type(x.payload) and not mode.tracing:
        drawn = lift((u < x.payload).astype(x.dtype))
        return constant_in(drawn, x) if x._requires_grad else drawn
    with mode.no_grad():
        drawn = (lift(u) < x).to(x.dtype)
    return constant_in(drawn, x)


def multinomial(x: Any, num_samples: int, replacement: bool = False, *, generator: Generator | None = None) -> Any:
    """Draw indices with probabilities in proportion to the elements of each row.

    With replacement an index is where ``u`` times the row's sum falls among its running sums, held in float64. Without,
    the `num_samples` largest ``w / e`` are taken, e exponentially distributed: the same as one draw after the other
    from what is left [1]_.

    Parameters
    ----------
    x : (n,) or (rows, n) floating point: finite weights >= 0, of positive sum; they need not sum to 1.
    num_samples : draws per row.
    replacement : whether an index can come again.
    generator : where from; the default generator if None.

    Returns
    -------
    tensor : int64, (num_samples,) or (rows, num_samples).

    Raises
    ------
    ShapeError : another number of dimensions; rows of no weights.
    DTypeError : `x` is not floating point.
    ArgumentError : `num_samples` is not positive, or without replacement more than there are weights above 0; a
        negative or infinite weight; no weight above 0.

    References
    ----------
    .. [1] P. S. Efraimidis, P. G. Spirakis: Weighted random sampling with a reservoir. Inf. Process. Lett. 97 (2006).

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.multinomial(tw.tensor([0.0, 3.0, 0.0]), 2, replacement=True)
    tensor([1, 1])
    """
    if replacement and type(num_samples) is int and num_samples > 0 and type(x.payload) is np.ndarray:
        if (found := _kernels("weighted").chosen_at_once(x.payload, num_samples, generator)) is not None:
            return lift(found)
    if x.dtype.kind != "f":
        raise DTypeError(f"multinomial only supports floating-point dtypes for input, got: {x.dtype}")
    if x.ndim not in (1, 2):
        raise ShapeError(f"prob_dist must be 1 or 2 dim, got {x.ndim}")
    count = integer(num_samples, "multinomial", "num_samples")
    if count <= 0:
        raise ArgumentError(f"cannot sample n_sample <= 0 samples, got {count}")
    if not replacement and count > x.shape[-1]:
        raise ArgumentError(f"cannot sample n_sample > prob_dist.size(-1) samples without replacement, got {count}")
    if x.shape[-1] == 0:
        if x.ndim == 1 or x.shape[0] != 0:
            raise ShapeError(f"multinomial(): cannot sample from an empty dimension, got shape {list(x.shape)}")
        from common.ops.create.creation import zeros

        return zeros((0, count), dtype=int64)
    drawn_by(x)
    least = 1 if replacement else count
    if type(x.payload) is np.ndarray and not mode.tracing:
        _kernels("weighted").require_weights(x, least)
        return lift(_kernels("weighted").chosen(x.payload.astype(float64), count, replacement, generator))
    with mode.no_grad():
        if isinstance(x.payload, np.ndarray):
            _kernels("weighted").require_weights(x, least)
            weights = lift(x.payload.astype(float64))
        else:
            from common.ops.random.parameters import weights_

            weights = weights_(x.detach(), least=least).to(float64)
        if replacement:
            from common.ops.functional import cumsum, searchsorted

            running = cumsum(weights, -1)
            u = lift(draw("rand", (*x.shape[:-1], count), float64, generator))
            return searchsorted(running, u * running[..., -1:], right=True)
        from common.ops.functional import clamp, topk

        waits = clamp(_exponential(tuple(x.shape), float64, generator), min=2.0**-54)
        return topk(weights / waits, count)[1]


def require(x: Any, holds: Any, message: str, found: str = "") -> None:
    """Refuse elements outside an interval, where there are elements to look at; with `found`, of a parameter's user."""
    elements = x.payload if isinstance(x, TensorBase) else x
    if isinstance(elements, (np.ndarray, float, int)):
        outer = ends(elements) if isinstance(elements, np.ndarray) else (elements,)
        if all(map(holds, outer)):
            return
        if found:
            from common.ops.random.parameters import BOUNDS

            message = f"{BOUNDS[message][0]}, but {found}"
        elements = unrepeated(np.asarray(elements))
        raise ArgumentError(message.format(elements[~np.asarray(holds(elements))].ravel()[0]))


def ends(x: np.ndarray) -> tuple[Any, ...]:
    """The least and the largest element, NaN where there is one; nothing of no elements."""
    x = unrepeated(x) if 0 in x.strides else x
    return (x.min(), x.max()) if x.size else ()


def _looked_at(x: Any, holds: Any, user: str, found: str) -> Any:
    """The parameter of a distribution, refused as `require` does; inside a trace by an op."""
    if isinstance(x, TensorBase) and not isinstance(x.payload, np.ndarray):
        from common.ops.random.parameters import bounded_

        with mode.no_grad():
            return bounded_(x.detach(), user=user)
    require(x, holds, user, found)
    return x


def _exponential(shape: tuple[Any, ...], dtype: np.dtype, generator: Generator | None) -> Any:
    """Exponentially distributed numbers of mean 1: the negative logarithms of 1 minus the numbers of `rand`."""
    from common.ops.functional import log1p

    return -log1p(-lift(draw("rand", shape, dtype, generator)))


def uniform_(self: TensorBase, *bounds: float, generator: Generator | None = None, **named: float) -> TensorBase:
    """Fill with numbers from the uniform distribution on [from, to), up to rounding: ``u (to - from) + from``.

    Parameters
    ----------
    bounds, named : ``from`` and ``to``, 0 and 1 by default.
    generator : where from; the default generator if None.

    Raises
    ------
    ArgumentError : ``from`` is larger than ``to``.
    DTypeError, GradientError : not floating point; a leaf that requires grad, outside `no_grad`.
    """
    first, last = bounds if len(bounds) == 2 else (0.0, 1.0)
    if named or len(bounds) not in (0, 2):
        given = {"from": 0.0, "to": 1.0} | dict(zip(("from", "to"), bounds, strict=False)) | named
        if len(bounds) > 2 or set(given) != {"from", "to"}:
            raise ArgumentError(f"uniform_() takes from, to and generator, got {bounds} and {sorted(named)}")
        first, last = given["from"], given["to"]
    if not first <= last:
        raise ArgumentError(f"uniform_ expects to return a [from, to) range, but found from={first} > to={last}")
    if _kernels("fills").drawn_over(self, "uniform", last - first, first, generator):
        return self
    drawn_by(into=self)
    u = lift(draw("rand", tuple(self.shape), self.dtype, generator))
    return assign(self, u if (first, last) == (0, 1) else u * (last - first) + first, "uniform")


def normal_(self: TensorBase, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> TensorBase:
    """Fill with numbers from a normal distribution, ``z std + mean``; errors as in `uniform_`, and std < 0."""
    require(std, lambda x: x >= 0, "normal expects std >= 0.0, but found std {}")
    if _kernels("fills").drawn_over(self, "normal", std, mean, generator):
        return self
    drawn_by(into=self)
    z = lift(draw("randn", tuple(self.shape), self.dtype, generator))
    return assign(self, (z if std == 1 else z * std) + mean, "normal")


def exponential_(self: TensorBase, lambd: float = 1.0, *, generator: Generator | None = None) -> TensorBase:
    """Fill with numbers from an exponential distribution of mean 1 / lambd; errors as in `uniform_`, and lambd <= 0."""
    require(lambd, lambda x: x > 0, "exponential_ expects lambda > 0.0, but found lambda={}")
    drawn_by(into=self)
    return assign(self, _exponential(tuple(self.shape), self.dtype, generator) / lambd, "exponential")


def bernoulli_(self: TensorBase, p: Any = 0.5, *, generator: Generator | None = None) -> TensorBase:
    """Fill with ones, of probability `p` (a number, or a tensor that broadcasts), and zeros; any dtype.

    Raises
    ------
    ArgumentError : a probability outside [0, 1].
    """
    p = lift(p.item() if isinstance(p, np.generic) else p)
    if isinstance(p, TensorBase) and p.dtype.kind != "f":
        raise DTypeError(f"bernoulli_(): expected a floating point tensor of probabilities, got {p.dtype}")
    p = _looked_at(p, lambda x: (x >= 0) & (x <= 1), "bernoulli_", "got p={}")
    if _kernels("fills").ones_over(self, p, generator):
        return self
    drawn_by(p, into=self)
    with mode.no_grad():
        u = lift(draw("rand", tuple(self.shape), float64, generator))
        ones = (u < p).to(self.dtype)
    return assign(self, ones, "bernoulli")


def random_(self: TensorBase, *bounds: int, generator: Generator | None = None, **named: int) -> TensorBase:
    """Fill with integers from [from, to), all with the same probability; see `randint`.

    Parameters
    ----------
    bounds, named : ``to``, or ``from`` and ``to``; by default from 0 on all that the dtype holds exactly; of int64, the
        63 bits of two draws.
    generator : where from; the default generator if None.

    Raises
    ------
    ArgumentError : no integers between the bounds.
    """
    given = dict(zip(("from", "to") if len(bounds) == 2 else ("to",), bounds, strict=False)) | named
    if len(bounds) > 2 or not set(given) <= {"from", "to"}:
        raise ArgumentError(f"random_() takes from, to and generator, got {bounds} and {sorted(named)}")
    first, last = given.get("from", 0), given.get("to")
    if last is None:
        last = 2 if self.dtype.kind == "b" else _EXACT.get(self.dtype.name) or int(np.iinfo(self.dtype).max) + 1
    if self.dtype == int64 and not given:
        drawn_by(into=self)
        high, low = (integers(0, 2**bits, tuple(self.shape), int64, generator) for bits in (31, 32))
        return assign(self, high * 2**32 + low, "random")
    require_order(first, last)
    if _kernels("fills").integers_over(self, first, last, generator):
        return self
    drawn_by(into=self)
    return assign(self, integers(int(first), int(last), tuple(self.shape), self.dtype, generator), "random")


_EXACT = {"float32": 2**24 + 1, "float64": 2**53}


def log_normal_(
    self: TensorBase, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None
) -> TensorBase:
    """Fill with exponentials of normal numbers, ``exp(z std + mean)``; errors as in `normal_`."""
    from common.ops.functional import exp

    require(std, lambda x: x > 0, "log_normal_ expects std > 0.0, but found std={}")
    drawn_by(into=self)
    z = lift(draw("randn", tuple(self.shape), self.dtype, generator))
    return assign(self, exp(z * std + mean), "log_normal")


def cauchy_(
    self: TensorBase, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None
) -> TensorBase:
    """Fill with numbers from a Cauchy distribution, ``tan(pi (u - 1/2)) sigma + median``; errors as in `uniform_`."""
    from common.ops.functional import tan

    require(sigma, lambda x: x > 0, "cauchy_ expects sigma > 0.0, but found sigma={}")
    drawn_by(into=self)
    u = lift(draw("rand", tuple(self.shape), self.dtype, generator))
    return assign(self, tan((u - 0.5) * np.pi) * sigma + median, "cauchy")


def geometric_(self: TensorBase, p: float, *, generator: Generator | None = None) -> TensorBase:
    """Fill with the number of trials, each of probability `p`, up to the first success: 1, 2, ...; any dtype.

    It is ``ceil(log(1 - u) / log(1 - p))``, in float64, and at least 1.

    Raises
    ------
    ArgumentError : `p` is not in (0, 1).
    """
    from common.ops.functional import ceil, clamp

    require(p, lambda x: (x > 0) & (x < 1), "geometric_ expects p to be in (0, 1), but got p={}")
    drawn_by(into=self)
    with mode.no_grad():
        trials = ceil(_exponential(tuple(self.shape), float64, generator) / -math.log1p(-p))
        return assign(self, clamp(trials, min=1.0).to(self.dtype), "geometric")


METHODS = {
    "bernoulli": bernoulli, "bernoulli_": bernoulli_, "cauchy_": cauchy_, "exponential_": exponential_,
    "geometric_": geometric_, "log_normal_": log_normal_, "multinomial": multinomial, "normal_": normal_,
    "random_": random_, "uniform_": uniform_,
}  # fmt: skip
