"""Makers of example operands, which an op's record names: inside the domain, away from kinks and ties.

``op.samples(rng, dtype) -> list of (operands, attrs)``; the tests of both engines and of derivatives are made of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

Rng: TypeAlias = "np.random.Generator"  # by name: importing numpy.random takes 15 ms
Draw = Callable[[Rng, tuple[int, ...], Any], np.ndarray]
Samples = Callable[[Rng, Any], list[tuple[tuple[np.ndarray, ...], dict[str, Any]]]]

_SHAPES: dict[int, list[tuple[tuple[int, ...], ...]]] = {
    1: [((4, 3),), ((),), ((1, 5),)],
    2: [((4, 3), (4, 3)), ((4, 3), (3,)), ((4, 1), (1, 3)), ((), (5,))],
    3: [((4, 3), (4, 3), (4, 3)), ((4, 3), (3,), (4, 1))],
    4: [((4, 3), (4, 3), (4, 3), (4, 3)), ((4, 3), (3,), (4, 1), ())],
}


def away_from_zero(rng: Rng, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Values of both signs, at least 0.2 in magnitude."""
    x = rng.normal(size=shape)
    return np.asarray(x + np.copysign(0.2, x), dtype)


def positive(rng: Rng, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Values between 0.3 and 3."""
    return np.asarray(rng.uniform(0.3, 3, shape), dtype)


def above_minus_one(rng: Rng, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Values between -0.7 and 3."""
    return np.asarray(rng.uniform(-0.7, 3, shape), dtype)


def truth(rng: Rng, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Bools."""
    return np.asarray(rng.integers(0, 2, shape), np.bool_)


def whole(rng: Rng, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """int64 between -9 and 9 without 0."""
    x = rng.integers(1, 10, shape)
    return np.asarray(np.where(rng.integers(0, 2, shape), x, -x))


def indices(rng: Rng, shape: tuple[int, ...], limit: int) -> np.ndarray:
    """int64 in [0, limit), with repetitions."""
    return rng.integers(0, limit, shape)


def of_elementwise(inputs: Sequence[str], draw: Draw) -> Samples:
    """Broadcasting combinations of operands that `draw` makes; a `condition` is always a truth value."""
    draws = [truth if name == "condition" else draw for name in inputs]

    def samples(rng: Rng, dtype: Any) -> list[Any]:
        shapes = _SHAPES[len(draws)]
        return [(tuple(d(rng, s, dtype) for d, s in zip(draws, case, strict=True)), {}) for case in shapes]

    return samples


def of_reduction(rng: Rng, dtype: Any) -> list[Any]:
    """One array, reduced over every kind of dimensions."""
    cases: list[tuple[int, ...]] = [(0,), (1,), (2,), (0, 1), (0, 2), (0, 1, 2), ()]
    attrs = [{"dim": dim, "keepdim": keep} for dim in cases for keep in (False, True)]
    return [((away_from_zero(rng, (3, 4, 5), dtype),), a) for a in attrs]


def one(*shape: int, **attrs: Any) -> Samples:
    """One array of a shape."""
    return lambda rng, dtype: [((away_from_zero(rng, shape, dtype),), attrs)]


def indexed(x: tuple[int, ...], index: tuple[int, ...], limit: int, **attrs: Any) -> Samples:
    """An array and indices below `limit`."""
    return lambda rng, dtype: [((away_from_zero(rng, x, dtype), indices(rng, index, limit)), attrs)]


def nothing(**attrs: Any) -> Samples:
    """No operands, and a dtype among the attributes."""
    return lambda rng, dtype: [((), {"dtype": np.dtype(dtype), **attrs})]


def draws(rng: Rng, dtype: Any) -> list[Any]:
    """The state of a generator, and shapes."""
    state = (np.array(rng.integers(0, 2**62)), np.array(rng.integers(0, 2**40)))
    return [(state, {"shape": shape, "dtype": np.dtype(dtype)}) for shape in [(), (3,), (4, 5)]]


def products(*lead: int) -> Samples:
    """Pairs of matrices, each as it is and transposed."""
    def samples(rng: Rng, dtype: Any) -> list[Any]:
        out = []
        for a in (False, True):
            for b in (False, True):
                left, right = ((3, 4), (4, 3))[a], ((4, 5), (5, 4))[b]
                operands = tuple(away_from_zero(rng, (*lead, *s), dtype) for s in (left, right))
                out.append((operands, {"trans_a": a, "trans_b": b}))
        return out

    return samples


def several(*shapes: tuple[int, ...]) -> Samples:
    """Arrays of these shapes."""
    return lambda rng, dtype: [(tuple(away_from_zero(rng, shape, dtype) for shape in shapes), {})]


def join(*makers: Samples) -> Samples:
    """The samples of all makers."""
    return lambda rng, dtype: [case for make in makers for case in make(rng, dtype)]


def parts(count: int) -> Samples:
    """Arrays that agree but for one dimension."""
    return lambda rng, dtype: [
        (tuple(away_from_zero(rng, (2, n + 1), dtype) for n in range(count)), {"dim": 1}),
    ]


def alike(count: int) -> Samples:
    """Arrays of one shape."""
    return lambda rng, dtype: [
        (tuple(away_from_zero(rng, (2, 3), dtype) for _ in range(count)), {"dim": dim}) for dim in (0, 1, 2)
    ]


def fixed(*attrs: dict[str, Any]) -> Samples:
    """No operands, and these attributes."""
    return lambda rng, dtype: [((), each) for each in attrs]


def conversions(rng: Rng, dtype: Any) -> list[Any]:
    """An array and a dtype to convert to."""
    targets = [np.dtype(d) for d in ("float32", "float64")]
    return [((away_from_zero(rng, (5,), dtype),), {"dtype": d, "x_dtype": np.dtype(dtype)}) for d in targets]


def probable(rng: Rng, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Values between 0.1 and 0.9."""
    return np.asarray(rng.uniform(0.1, 0.9, shape), dtype)


def inside_unit(rng: Rng, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Values of both signs between 0.1 and 0.9 in magnitude."""
    return np.asarray(rng.uniform(0.1, 0.9, shape) * rng.choice([-1.0, 1.0], shape), dtype)
