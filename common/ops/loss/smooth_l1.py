"""A loss of a difference that is a parabola near 0 and linear beyond, as one loop, and its slope as another."""

from __future__ import annotations

from typing import Any

from common.compiler.primitives import absolute, select
from common.core.op import Op
from common.kernels.math import elementary as e
from common.ops._define import elementwise
from common.ops.math.arithmetic import abs
from common.ops.math.compare import lt, where


def _samples(count: int) -> Any:
    """Operands on both sides of where the pieces meet, the last of which is positive."""

    def draw(rng: Any, dtype: Any) -> list[Any]:
        operands = [rng.uniform(-3, 3, (5, 3)).astype(dtype) for _ in range(count)]
        return [((*operands, rng.uniform(0.5, 1.5, (5, 3)).astype(dtype)), {})]

    return draw


def _smooth_slope(up: Any, d: Any, beta: Any) -> Any:
    inside = absolute(d) < beta
    half = select(inside, up, 0.0) / beta * 0.5 * d
    return select(inside, 0.0, up) * e.sign(d) + half + half


smooth_l1_slope: Op = elementwise(
    "smooth_l1_slope", _smooth_slope,
    (lambda g, d, beta: smooth_l1_slope(g, d, beta),
     lambda g, up, d, beta: where(lt(abs(d), beta), g * up / beta, 0),
     lambda g, up, d, beta: where(lt(abs(d), beta), -g * up * d / (beta * beta), 0)),
    samples=_samples(2), domain="float",
    doc="up d / beta where |d| < beta, else up sign(d). d/dup = the same of 1, d/dd = up / beta, else 0, "
        "d/dbeta = -up d / beta^2, else 0.",
)  # fmt: skip

smooth_l1_piece = elementwise(
    "smooth_l1_piece",
    lambda d, beta: select(absolute(d) < beta, 0.5 * (d * d) / beta, absolute(d) - 0.5 * beta),
    (lambda g, d, beta: smooth_l1_slope(g, d, beta),
     lambda g, d, beta: where(lt(abs(d), beta), -g * (0.5 * (d * d)) / (beta * beta), -0.5 * g)),
    samples=_samples(1), domain="float", node_name="SmoothL1Loss",
    doc="d^2 / (2 beta) where |d| < beta, else |d| - beta / 2. d/dd = d / beta, else sign(d); "
        "d/dbeta = -d^2 / (2 beta^2), else -1/2.",
)  # fmt: skip
