"""Steps along a direction that satisfy the strong Wolfe conditions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Trial:
    """A step size that was tried: the loss there, its gradient (n,), and its derivative along the direction."""

    size: float
    loss: float
    gradient: Any
    slope: float


def cubic_minimum(a: Trial, b: Trial, bounds: tuple[float, float] | None = None) -> float:
    """Where the cubic with the losses and slopes of two trials is smallest, in `bounds`, by default between them.

    Source: Nocedal and Wright, Numerical optimization, 2006, equation 3.59.
    """
    if a.size > b.size:
        a, b = b, a
    low, high = (a.size, b.size) if bounds is None else bounds
    middle = (low + high) / 2
    if a.size == b.size:
        return middle
    first = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.size - b.size)
    square = first * first - a.slope * b.slope
    if not square >= 0:
        return middle
    second = math.sqrt(square)
    bottom = b.slope - a.slope + 2 * second
    if bottom == 0:
        return middle
    return min(max(b.size - (b.size - a.size) * ((b.slope + second - first) / bottom), low), high)


def strong_wolfe(
    evaluate: Callable[[float], Trial],
    start: Trial,
    size: float,
    longest: float,
    tolerance: float,
    most: int,
    decrease: float = 1e-4,
    curvature: float = 0.9,
) -> tuple[Trial, int]:
    """A trial that satisfies both conditions, or the lowest found in `most` trials; and the number of trials.

    Parameters
    ----------
    evaluate : the trial at a step size.
    start : step size 0.
    size : the first step size to try.
    longest : the largest absolute element of the direction.
    tolerance : an interval in which no element moves by more than this is not searched further.
    decrease, curvature : loss <= loss_0 + decrease size slope_0, and |slope| <= curvature |slope_0|.

    References
    ----------
    Nocedal and Wright, Numerical optimization, 2006, algorithms 3.5 and 3.6.
    """
    before, now = start, evaluate(size)
    count, steps, bracket = 1, 0, [start, now]
    while steps < most:
        too_high = now.loss > start.loss + decrease * now.size * start.slope or (steps > 1 and now.loss >= before.loss)
        if not too_high and abs(now.slope) <= -curvature * start.slope:
            return now, count
        if too_high or now.slope >= 0:
            bracket = [before, now]
            break
        bounds = (now.size + 0.01 * (now.size - before.size), 10 * now.size)
        following = cubic_minimum(before, now, bounds)
        before, now = now, evaluate(following)
        count, steps, bracket = count + 1, steps + 1, [start, now]
    low, high = sorted(bracket, key=lambda trial: trial.loss)
    stuck = False
    while steps < most and abs(high.size - low.size) * longest >= tolerance:
        left, right = sorted((low.size, high.size))
        size, margin = cubic_minimum(low, high), 0.1 * (right - left)
        near = min(right - size, size - left) < margin
        if near and (stuck or size >= right or size <= left):
            size = right - margin if abs(size - right) < abs(size - left) else left + margin
            near = False
        stuck = near
        now = evaluate(size)
        count, steps = count + 1, steps + 1
        if now.loss > start.loss + decrease * now.size * start.slope or now.loss >= low.loss:
            low, high = sorted((low, now), key=lambda trial: trial.loss)
        else:
            if abs(now.slope) <= -curvature * start.slope:
                return now, count
            if now.slope * (high.size - low.size) >= 0:
                high = low
            low = now
    return low, count


def _strong_wolfe(
    obj_func: Callable[[Any, Any, Any], tuple[Any, Any]], x: Any, t: Any, d: Any, f: Any, g: Any, gtd: Any,
    c1: float = 1e-4, c2: float = 0.9, tolerance_change: float = 1e-9, max_ls: int = 25,
) -> tuple[float, Any, float, int]:  # fmt: skip
    """`strong_wolfe` as libraries of PyTorch call it: loss, gradient, step size and the number of trials.

    Parameters
    ----------
    obj_func : ``obj_func(x, t, d)``, loss and gradient (n,) after a step of size t.
    x, t, d : where it begins, the first step size, and the direction (n,).
    f, g, gtd : loss and gradient there, and the derivative along the direction.
    c1, c2, tolerance_change, max_ls : decrease, curvature, tolerance and most.
    """

    def evaluate(size: float) -> Trial:
        loss, gradient = obj_func(x, size, d)
        return Trial(size, float(loss), gradient, float(gradient.dot(d)))

    longest = float(d.abs().max())
    start = Trial(0.0, float(f), g, float(gtd))
    found, count = strong_wolfe(evaluate, start, float(t), longest, tolerance_change, max_ls, c1, c2)
    return found.loss, found.gradient, found.size, count


def _cubic_interpolate(
    x1: Any, f1: Any, g1: Any, x2: Any, f2: Any, g2: Any, bounds: tuple[float, float] | None = None
) -> float:
    """`cubic_minimum` as libraries of PyTorch call it: of places, losses and slopes."""
    first, second = (Trial(float(x), float(f), None, float(g)) for x, f, g in ((x1, f1, g1), (x2, f2, g2)))
    return cubic_minimum(first, second, bounds)
