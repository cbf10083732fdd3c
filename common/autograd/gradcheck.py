"""Derivatives against finite differences along random directions: an oracle that shares no code with the rules.

One direction v and one cotangent c test the whole Jacobian J at the cost of two evaluations: c.(f(x + h v) -
f(x - h v)) / 2h is compared with v.(J^T c). A wrong element goes unnoticed only if it meets a zero of v or c, which
has probability 0. Source of the idea: HIPS autograd's `check_vjp`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from common.autograd import transforms
from common.errors import GradientError
from common.tree import flatten, unflatten

Function = Callable[..., Any]


def gradcheck(
    function: Function,
    inputs: Sequence[Any],
    *,
    vjp: Function = transforms.vjp,
    eps: float = 1e-6,
    rtol: float = 1e-6,
    atol: float = 1e-8,
    directions: int = 2,
    seed: int = 0,
) -> bool:
    """Compare the pullback of a function with central differences.

    Parameters
    ----------
    function : of float64 arrays; returns tensors or arrays in any structure.
    inputs : the arrays at which it is checked; the function is smooth within `eps` of them.
    vjp : the transform to check.
    eps : half the distance of the two evaluations, relative to the size of the inputs' elements.
    rtol, atol : relative to the larger of the sums of magnitudes on either side; absolute.
    directions : number of random pairs of direction and cotangent.

    Returns
    -------
    True

    Raises
    ------
    GradientError : the two differ; names both numbers and the input with the worst share.

    Examples
    --------
    >>> import numpy as np, dynamic
    >>> gradcheck(lambda x: x * x, [np.array([1.0, 2.0])])
    True
    """
    rng = np.random.default_rng(seed)
    points = [np.asarray(x, np.float64) for x in inputs]
    outputs, pullback = vjp(function, *points)
    shapes, structure = flatten(outputs)
    for _ in range(directions):
        cotangents = [rng.standard_normal(np.shape(_array(y))) for y in shapes]
        steps = [rng.standard_normal(x.shape) for x in points]
        given = [np.asarray(c, _array(y).dtype) for c, y in zip(cotangents, shapes, strict=True)]
        gradients = [_array(g) for g in flatten(pullback(unflatten(structure, given)))[0]]
        ahead, behind = (
            flatten(vjp(function, *(x + sign * eps * v for x, v in zip(points, steps, strict=True)))[0])[0]
            for sign in (1, -1)
        )
        terms = [c * (_array(a) - _array(b)) / (2 * eps) for c, a, b in zip(cotangents, ahead, behind, strict=True)]
        parts = [g * v for g, v in zip(gradients, steps, strict=True)]
        measured, claimed = (sum(float(np.sum(p)) for p in terms), sum(float(np.sum(p)) for p in parts))
        scale = max(sum(float(np.sum(np.abs(p))) for p in side) for side in (terms, parts))
        if not abs(measured - claimed) <= atol + rtol * scale:
            raise GradientError(
                f"the gradient along a random direction is {claimed!r}, finite differences give {measured!r} "
                f"(difference {abs(measured - claimed):.3g}, allowed {atol + rtol * scale:.3g}); shares of the inputs: "
                f"{[float(np.sum(p)) for p in parts]}"
            )
    return True


def gradgradcheck(function: Function, inputs: Sequence[Any], *, seed: int = 0, **options: Any) -> bool:
    """Compare second derivatives with central differences of the first: `gradcheck` of the pullback.

    Parameters
    ----------
    function, inputs, options : see `gradcheck`.

    Raises
    ------
    GradientError : the two differ.
    """
    vjp = options.get("vjp", transforms.vjp)
    rng = np.random.default_rng(seed + 1)
    points = [np.asarray(x, np.float64) for x in inputs]
    outputs, structure = flatten(vjp(function, *points)[0])
    cotangents = [rng.standard_normal(np.shape(_array(y))) for y in outputs]

    def pull(*arguments: Any) -> Any:
        given = arguments[len(points) :]
        return transforms.vjp(function, *arguments[: len(points)])[1](unflatten(structure, list(given)))

    return gradcheck(pull, [*points, *cotangents], seed=seed, **options)


def _array(x: Any) -> np.ndarray:
    return np.asarray(x.detach().numpy() if hasattr(x, "detach") else x)
