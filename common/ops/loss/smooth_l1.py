"""Losses of a difference that are a parabola near 0 and linear beyond, each as one loop, and their slopes."""

from __future__ import annotations

from typing import Any

from common.compiler.primitives import absolute, select
from common.core.dtypes import bool_
from common.core.op import Op
from common.kernels.math import elementary as e
from common.ops._define import elementwise
from common.ops.math.arithmetic import abs, sign
from common.ops.math.compare import le, lt, where


def _samples(count: int) -> Any:
    """Operands on both sides of where the pieces meet, the last of which is positive."""

    def draw(rng: Any, dtype: Any) -> list[Any]:
        operands = [rng.uniform(-3, 3, (5, 3)).astype(dtype) for _ in range(count)]
        return [((*operands, rng.uniform(0.5, 1.5, (5, 3)).astype(dtype)), {})]

    return draw


def _size(d: Any) -> Any:
    """The magnitude of an operand; of a truth value, 0 or 1."""
    return d * 1 if isinstance(d, bool) or getattr(d, "dtype", None) == bool_ else abs(d)


def _smooth_slope(up: Any, d: Any, beta: Any) -> Any:
    inside = absolute(d) < beta
    half = select(inside, up, 0.0) / beta * 0.5 * d
    return select(inside, 0.0, up) * e.sign(d) + half + half


smooth_l1_slope: Op = elementwise(
    "smooth_l1_slope", _smooth_slope,
    (lambda g, d, beta: smooth_l1_slope(g, d, beta),
     lambda g, up, d, beta: where(lt(_size(d), beta), g * up / beta, 0),
     lambda g, up, d, beta: where(lt(_size(d), beta), -g * up * d / (beta * beta), 0)),
    samples=_samples(2), domain="float",
    doc="up d / beta where |d| < beta, else up sign(d). d/dup = the same of 1, d/dd = up / beta, else 0, "
        "d/dbeta = -up d / beta^2, else 0.",
)  # fmt: skip

smooth_l1_piece = elementwise(
    "smooth_l1_piece",
    lambda d, beta: select(absolute(d) < beta, 0.5 * (d * d) / beta, absolute(d) - 0.5 * beta),
    (lambda g, d, beta: smooth_l1_slope(g, d, beta),
     lambda g, d, beta: where(lt(_size(d), beta), -g * (0.5 * (d * d)) / (beta * beta), -0.5 * g)),
    samples=_samples(1), domain="real", node_name="SmoothL1Loss",
    doc="d^2 / (2 beta) where |d| < beta, else |d| - beta / 2. d/dd = d / beta, else sign(d); "
        "d/dbeta = -d^2 / (2 beta^2), else -1/2.",
)  # fmt: skip


def _huber_slope(up: Any, d: Any, delta: Any) -> Any:
    inside = absolute(d) <= delta
    half = select(inside, up, 0.0) * 0.5 * d
    return select(inside, 0.0, up) * delta * e.sign(d) + half + half


huber_slope: Op = elementwise(
    "huber_slope", _huber_slope,
    (lambda g, d, delta: where(le(_size(d), delta), g * d, 0) + where(le(_size(d), delta), 0, g * delta * sign(d)),
     lambda g, up, d, delta: g * where(le(_size(d), delta), up, 0) + 0,
     lambda g, up, d, delta: where(le(_size(d), delta), 0, g * up * sign(d))),
    samples=_samples(2), domain="float",
    doc="up d where |d| <= delta, else up delta sign(d). d/dup = the same of 1, d/dd = up, else 0, "
        "d/ddelta = 0, else up sign(d).",
)  # fmt: skip

huber_piece = elementwise(
    "huber_piece",
    lambda d, delta: select(absolute(d) <= delta, 0.5 * (d * d), delta * (absolute(d) - 0.5 * delta)),
    (lambda g, d, delta: huber_slope(g, d, delta),
     lambda g, d, delta: where(le(_size(d), delta), 0, g * (_size(d) - delta))),
    samples=_samples(1), domain="real", node_name="HuberLoss",
    doc="d^2 / 2 where |d| <= delta, else delta (|d| - delta / 2). d/dd = d, else delta sign(d); "
        "d/ddelta = 0, else |d| - delta.",
)  # fmt: skip
