"""Random compositions of ops of every kind, on tensors of any shape.

A composition is a function of its seed: it takes ops from tables, one after the other, each on one or two earlier
values, and looks at shapes. So it finds what no single op shows: kernels that are joined, memory that is shared, and
values that a plan keeps. As a command it draws new ones until one differs or the time is over::

    python -m tests.helpers.compositions --seconds 600 --seed 7
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import dynamic as tw
from tests.helpers.until import draw
from tests.parity.engines import Derivatives

MOST = 4000
"""Elements of the largest value that goes on."""
SIZES = (1, 1, 2, 3, 7, 16, 17, 24, 33)

Op = Callable[[Any, int, random.Random], Any]
Pair = Callable[[Any, Any, int], Any]


def _numbers(choose: random.Random, most: int, count: int) -> np.ndarray:
    """Random indices below `most`."""
    return np.array([choose.randrange(most) for _ in range(count)])


def _computed(x: Any, d: int) -> Any:
    """An index along a dimension for each element, made of the elements themselves."""
    return tw.floor(x.detach() * 3).to(np.dtype(np.int64)) % x.shape[d]


def _positions(x: Any, d: int) -> Any:
    """0, 1, ... along a dimension, in the dtype of x."""
    return tw.reshape(tw.arange(x.shape[d]).to(x.dtype), [-1 if i == d else 1 for i in range(x.ndim)])


def _with_part(x: Any, d: int, choose: random.Random) -> Any:
    y = tw.clone(x)
    y[..., :1] = x[..., -1:] * 2
    return y


def _into_part(x: Any, d: int, choose: random.Random) -> Any:
    y = x * 1.0
    tw.narrow(y, d, 0, 1).mul_(0.5)
    return y.add_(tw.sin(x))


def _weights(x: Any) -> Any:
    return tw.ones(1, 1, 3).to(x.dtype) / 3


def _gram(x: Any) -> Any:
    rows = tw.reshape(x, (x.shape[0], -1))[:, :6]
    return tw.transpose(rows, 0, 1) @ rows


OPS: dict[str, Op] = {
    "tanh": lambda x, d, choose: tw.tanh(x),
    "exp": lambda x, d, choose: tw.exp(tw.clamp(x, -3, 3)),
    "log": lambda x, d, choose: tw.log(tw.abs(x) + 0.3),
    "power": lambda x, d, choose: tw.pow(tw.abs(x) + 0.2, tw.clamp(x, -2, 2)),
    "gelu": lambda x, d, choose: tw.nn.functional.gelu(x),
    "clamp": lambda x, d, choose: tw.clamp(x, -0.8, 1.2),
    "where": lambda x, d, choose: tw.where(x > 0.2, x, tw.cos(x)),
    "number": lambda x, d, choose: choose.choice((2, 0.5, -1.5)) * x,
    "masked_fill": lambda x, d, choose: tw.masked_fill(x, x < 0, 0.1),
    "sum": lambda x, d, choose: tw.sum(x, d, choose.random() < 0.5),
    "mean": lambda x, d, choose: x - tw.mean(x, d, True),
    "amax": lambda x, d, choose: tw.amax(x, d, choose.random() < 0.5),
    "var": lambda x, d, choose: (x - tw.mean(x, d, True)) * tw.rsqrt(tw.var(x, d, correction=0, keepdim=True) + 1e-3),
    "softmax": lambda x, d, choose: tw.softmax(x, d),
    "log_softmax": lambda x, d, choose: tw.log_softmax(x, d),
    "logsumexp": lambda x, d, choose: tw.logsumexp(x, d, choose.random() < 0.5),
    "cumsum": lambda x, d, choose: tw.cumsum(x, d),
    "sort": lambda x, d, choose: tw.sort(x, d)[0],
    "topk": lambda x, d, choose: tw.topk(x, max(1, x.shape[d] // 2), d)[0],
    "cummax": lambda x, d, choose: tw.cummax(x, d)[0],
    "flip": lambda x, d, choose: tw.flip(x, (d,)),
    "roll": lambda x, d, choose: tw.roll(x, choose.choice((1, -1, 2)), d),
    "pad": lambda x, d, choose: tw.nn.functional.pad(x, (1, 2), value=0.5),
    "narrow": lambda x, d, choose: tw.narrow(x, d, x.shape[d] // 3, max(1, x.shape[d] - x.shape[d] // 3 - 1)),
    "step": lambda x, d, choose: x[::2],
    "last": lambda x, d, choose: x[-1],
    "transpose": lambda x, d, choose: tw.transpose(x, 0, -1),
    "flatten": lambda x, d, choose: tw.reshape(x, -1),
    "rows": lambda x, d, choose: tw.reshape(x, (x.shape[0], -1)),
    "unsqueeze": lambda x, d, choose: tw.unsqueeze(x, d) if x.ndim < 4 else x,
    "expand": lambda x, d, choose: tw.expand(tw.unsqueeze(x, 0), (3, *x.shape)) if x.ndim < 4 else x,
    "repeat_interleave": lambda x, d, choose: tw.repeat_interleave(x, 2, d),
    "cat": lambda x, d, choose: tw.cat([x, x * 2, tw.flip(x, (d,))], d),
    "stack": lambda x, d, choose: tw.stack([x, tw.sin(x)], d) if x.ndim < 4 else x,
    "chunk": lambda x, d, choose: tw.chunk(x, 2, d)[-1],
    "unbind": lambda x, d, choose: tw.unbind(x, d)[0] * tw.unbind(x, d)[-1],
    "diagonal": lambda x, d, choose: tw.diagonal(x, 0, -2, -1) if x.ndim > 1 else x,
    "unfold": lambda x, d, choose: x.unfold(d, 2, 1) if x.shape[d] > 2 and x.ndim < 4 else x,
    "with_part": _with_part,
    "into_part": _into_part,
    "index_select": lambda x, d, choose: tw.index_select(x, d, _numbers(choose, x.shape[d], 4)),
    "gather": lambda x, d, choose: tw.gather(tw.exp(tw.clamp(x, -3, 3)), d, _computed(x, d)),
    "getitem": lambda x, d, choose: x[_computed(tw.reshape(x, -1)[:20], 0) % x.shape[0]],
    "backwards": lambda x, d, choose: x[tw.arange(x.shape[0] - 1, -1, -1)] * 2,
    "index_add": lambda x, d, choose: tw.index_add(x, d, _numbers(choose, x.shape[d], x.shape[d]), tw.cos(x)),
    "index_put": lambda x, d, choose: tw.index_put(x, (_numbers(choose, x.shape[0], 5),), x[0] * 0.5, accumulate=True),
    "scatter_add": lambda x, d, choose: tw.scatter_add(x, d, _computed(x, d), x * 1.5),
    "mm": lambda x, d, choose: x @ tw.transpose(x, -1, -2) if x.ndim > 1 else x,
    "inner": lambda x, d, choose: tw.einsum("...i,...i->...", x, tw.sigmoid(x)),
    "solve": lambda x, d, choose: tw.linalg.solve(a := _gram(x) * 0.1 + tw.eye(min(6, x.numel() // x.shape[0])) * 2, a),
    "conv1d": lambda x, d, choose: tw.nn.functional.conv1d(tw.reshape(x, (1, 1, -1)), _weights(x), padding=1),
    "max_pool1d": lambda x, d, choose: tw.nn.functional.max_pool1d(tw.reshape(x, (1, 1, -1)), 2, ceil_mode=True),
    "avg_pool1d": lambda x, d, choose: tw.nn.functional.avg_pool1d(tw.reshape(x, (1, 1, -1)), 2, padding=1),
    "waves": lambda x, d, choose: x * tw.sin(_positions(x, d) / 10) + tw.cos(_positions(x, d)),
    "average": lambda x, d, choose: tw.cumsum(x, d) / (_positions(x, d) + 1),
    "every_third": lambda x, d, choose: tw.where(_positions(x, d) % 3 == 1, x, x * 0.5),
    "window": lambda x, d, choose: x * tw.cumsum(tw.exp(-((_positions(x, d) - 4) ** 2) / 9), d),
}  # fmt: skip


def _overwritten(x: Any, y: Any, d: int) -> Any:
    z = tw.clone(x)
    tw.narrow(z, d, 0, max(1, x.shape[d] // 2)).add_(tw.narrow(y, d, x.shape[d] // 2, max(1, x.shape[d] // 2)))
    return z


#: Ops of two values that broadcast against each other; of values of one shape, below.
BROADCAST: dict[str, Pair] = {
    "add": lambda x, y, d: x + y,
    "mul": lambda x, y, d: x * y,
    "div": lambda x, y, d: x / (tw.abs(y) + 1),
    "maximum": lambda x, y, d: tw.maximum(x, y),
    "chosen": lambda x, y, d: tw.where(x > y, x, y * 2),
    "lerp": lambda x, y, d: tw.lerp(x, tw.sin(y), 0.3),
    "outer": lambda x, y, d: tw.unsqueeze(x, -1) * tw.unsqueeze(y, -2) if x.shape[-1] * x.numel() < MOST else x - y,
}  # fmt: skip
ALIKE: dict[str, Pair] = {
    "joined": lambda x, y, d: tw.cat([x * 2, y, x / (tw.abs(y) + 1)], d),
    "beside": lambda x, y, d: tw.stack([x, y + 1], -1) if x.ndim < 4 else x + y,
    "products": lambda x, y, d: x @ tw.transpose(y, -1, -2) if x.ndim > 1 else x * y,
    "overwritten": _overwritten,
    "distance": lambda x, y, d: tw.sum((x - y) ** 2, d),
}  # fmt: skip


def _fits(x: Any, y: Any) -> bool:
    """Whether two values broadcast, to no more elements than go on."""
    total: Any = 1
    for i in range(1, max(x.ndim, y.ndim) + 1):
        m, n = (v.shape[-i] if i <= v.ndim else 1 for v in (x, y))
        if not (m == n or m == 1 or n == 1):
            return False
        total = total * (n if m == 1 else m)
    return bool(y.ndim and x is not y and 0 < total < MOST)


def _applied(x: Any, made: Sequence[Any], choose: random.Random) -> Any:
    """A value of an earlier one, or of two."""
    d = choose.randrange(x.ndim)
    partners = [y for y in made if _fits(x, y)] if choose.random() < 0.4 else []
    if not partners:
        return OPS[choose.choice(list(OPS))](x, d, choose)
    y = choose.choice(partners)
    pairs = {**BROADCAST, **ALIKE} if tuple(x.shape) == tuple(y.shape) else BROADCAST
    return pairs[choose.choice(list(pairs))](x, y, d)


def composition(seed: int, count: int) -> Callable[..., list[Any]]:
    """A program of `count` ops on its arguments, of any shapes."""

    def run(*arguments: Any) -> list[Any]:
        choose, made = random.Random(seed), list(arguments)
        for _ in range(count):
            x = choose.choice(made)
            if x.ndim and 0 < x.numel() < MOST:
                made.append(_applied(x, made, choose))
        return made[-4:]

    return run


def check(seed: int) -> None:
    """Compare the engines on one composition: three calls, of which two have the same sizes.

    Raises
    ------
    AssertionError : a bit differs.
    """
    choose, rng = random.Random(seed), np.random.default_rng(seed)
    dtype, ranks = choose.choice((np.float32, np.float64)), [choose.randint(1, 3) for _ in range(2)]
    both = Derivatives(composition(seed, choose.randint(3, 9)), choose.choice((1, 1, 2)), unfused=False)
    for again in (False, True, False):
        if not again:
            shapes = [tuple(choose.choice(SIZES) for _ in range(rank)) for rank in ranks]
        both.check([rng.normal(size=shape).astype(dtype) for shape in shapes], rng, f"composition {seed}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw compositions until the time is over."""
    draw(check, "compositions", __doc__, arguments)


if __name__ == "__main__":
    main()
