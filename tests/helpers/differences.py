"""Finite differences: what a gradient must be, found without any rule."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from dynamic import autograd
from tests.helpers.wrapped import wrap

STEP = 1e-5


def scalar(f: Callable[..., Any], weights: list[np.ndarray], rng: np.random.Generator) -> Callable[..., Any]:
    """<w, f(x)> for fixed random w, which are drawn at the first call."""

    def projected(*tensors: Any) -> Any:
        y = f(*tensors)
        outputs = [o for o in (y if isinstance(y, tuple) else (y,)) if o.dtype.kind == "f"]
        if not weights:
            weights.extend(rng.normal(size=o.shape) for o in outputs)
        total = (outputs[0] * wrap(weights[0])).sum()
        for o, w in zip(outputs[1:], weights[1:], strict=True):
            total = total + (o * wrap(w)).sum()
        return total

    return projected


def check_gradient(
    f: Callable[..., Any], arrays: Sequence[np.ndarray], what: str, *, order: int = 1, fixed: Collection[int] = ()
) -> None:
    """Compare the derivative of ``<w, f(x)>`` along a random direction with a central difference, in float64.

    Parameters
    ----------
    order : 2 compares the derivative of ``<v, gradient>`` instead: differences of gradients.
    fixed : positions of arrays by which `f` has no derivative, whatever differences say; they are not moved.

    Raises
    ------
    AssertionError : they differ by more than rounding and truncation explain.
    """
    rng = np.random.default_rng(20)
    value = scalar(f, [], rng)
    value(*map(wrap, arrays))
    moves = [x.dtype.kind == "f" and i not in fixed for i, x in enumerate(arrays)]
    directions = [rng.normal(size=x.shape) if move else None for x, move in zip(arrays, moves, strict=True)]
    if order == 2:
        value = gradient_along(value, [None if d is None else rng.normal(size=d.shape) for d in directions])
    leaves = [wrap(x, requires_grad=d is not None) for x, d in zip(arrays, directions, strict=True)]
    inputs = [x for x in leaves if x.requires_grad]
    y = value(*leaves)
    if y.requires_grad:
        grads = autograd.grad(y, inputs, allow_unused=True)
    else:
        grads = (None,) * len(inputs)
    moved = [d for d in directions if d is not None]
    ours = sum(float((g.payload * d).sum()) for g, d in zip(grads, moved, strict=True) if g is not None)

    def at(step: float) -> float:
        points = [x if d is None else x + step * d for x, d in zip(arrays, directions, strict=True)]
        return float(
            value(*[wrap(np.asarray(x), requires_grad=move) for x, move in zip(points, moves, strict=True)]).payload
        )

    # Richardson: the error is O(STEP^4)
    wide, narrow = (at(2 * STEP) - at(-2 * STEP)) / (4 * STEP), (at(STEP) - at(-STEP)) / (2 * STEP)
    expected = (4 * narrow - wide) / 3
    scale = max(1.0, abs(expected), abs(float(y.payload)))
    assert abs(ours - expected) <= 2e-8 * scale / min(1, STEP * 1e5), f"{what}: {ours!r}, differences say {expected!r}"


def gradient_along(value: Callable[..., Any], directions: list[np.ndarray | None]) -> Callable[..., Any]:
    """<v, gradient of value> as a function that can be differentiated."""

    def along(*tensors: Any) -> Any:
        inputs = [x for x in tensors if x.requires_grad]
        grads = autograd.grad(value(*tensors), inputs, create_graph=True, allow_unused=True)
        moved = [d for d in directions if d is not None]
        total = wrap(np.zeros(()))
        for g, v in zip(grads, moved, strict=True):
            if g is not None:
                total = total + (g * wrap(v)).sum()
        return total

    return along
