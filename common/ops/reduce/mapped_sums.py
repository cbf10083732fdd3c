"""Sums of functions of elements, of which norms and variances are made; the eager engine runs each as one kernel."""

from __future__ import annotations

from typing import Any

from common.ops._define import composite
from common.ops._samples import away_from_zero, of_reduction
from common.ops.math.arithmetic import abs, sign
from common.ops.math.compare import isnan, where
from common.ops.math.transcendental import exp
from common.ops.reduce.reductions import spread, sum_


def _with_means(rng: Any, dtype: Any) -> list[Any]:
    cases = [((0,), (1, 4, 5)), ((1,), (3, 1, 5)), ((2,), (3, 4, 1)), ((1, 2), (3, 1, 1)), ((0, 2), (1, 4, 1))]
    return [
        ((away_from_zero(rng, (3, 4, 5), dtype), away_from_zero(rng, kept, dtype)), {"dim": dim, "keepdim": keepdim})
        for dim, kept in cases
        for keepdim in (False, True)
    ]


def _cubes(x: Any, *, dim: tuple[int, ...], keepdim: bool) -> Any:
    size = abs(x)
    return sum_(size * size * size, dim=dim, keepdim=keepdim)


def _deviations(x: Any, m: Any, *, dim: tuple[int, ...], keepdim: bool) -> Any:
    centred = x - m
    return sum_(centred * centred, dim=dim, keepdim=keepdim)


sum_of_squares = composite(
    "sum_of_squares", lambda x, *, dim, keepdim: sum_(x * x, dim=dim, keepdim=keepdim),
    (lambda g, x, dim: spread(g, x.shape, dim) * (x * 2),),
    inputs=("x",), reduce="squares", samples=of_reduction, doc="S(x x) over dims. d/dx = 2 x.",
)  # fmt: skip

sum_of_magnitudes = composite(
    "sum_of_magnitudes", lambda x, *, dim, keepdim: sum_(abs(x), dim=dim, keepdim=keepdim),
    (lambda g, x, dim: spread(g, x.shape, dim) * sign(x),),
    inputs=("x",), reduce="magnitudes", samples=of_reduction, doc="S(|x|) over dims. d/dx = sign(x).",
)  # fmt: skip

sum_of_cubes = composite(
    "sum_of_cubes", _cubes,
    (lambda g, x, dim: spread(g, x.shape, dim) * (abs(x) * x * 3),),
    inputs=("x",), reduce="cubes", samples=of_reduction, doc="S(|x|^3) over dims. d/dx = 3 |x| x.",
)  # fmt: skip

sum_of_deviations = composite(
    "sum_of_deviations", _deviations,
    (lambda g, x, m, dim: spread(g, x.shape, dim) * ((x - m) * 2),
     lambda g, x, m, dim: spread(g, x.shape, dim) * ((m - x) * 2)),
    inputs=("x", "m"), reduce="deviations", samples=_with_means,
    doc="S((x - m)^2) over dims; m is given with its dimensions kept. d/dx = 2 (x - m), d/dm its negative, summed.",
)  # fmt: skip

sum_of_exponentials = composite(
    "sum_of_exponentials", lambda x, m, *, dim, keepdim: sum_(exp(x - m), dim=dim, keepdim=keepdim),
    (lambda g, x, m, dim: spread(g, x.shape, dim) * exp(x - m),
     lambda g, x, m, dim: spread(g, x.shape, dim) * -exp(x - m)),
    inputs=("x", "m"), reduce="exponentials", samples=_with_means,
    doc="S(e^(x - m)) over dims; m is given with its dimensions kept. d/dx = e^(x - m), d/dm its negative, summed.",
)  # fmt: skip

nansum_ = composite(
    "nansum", lambda x, *, dim, keepdim: sum_(where(isnan(x), 0, x), dim=dim, keepdim=keepdim),
    (lambda g, x, dim: where(isnan(x), 0, spread(g, x.shape, dim)),),
    inputs=("x",), reduce="numbers", samples=of_reduction,
    doc="Sum with 0 in place of nan. d/dx = 1, 0 where x is nan.",
)  # fmt: skip
