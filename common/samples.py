"""Example operands of every op, for the generated tests: inside the domain, away from kinks and ties.

``op.samples(rng, dtype) -> list of (operands, attrs)``, filled in here for the package's own ops when this module
is imported; an op of a user brings its own. Importing it costs a program nothing that does not test.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from common import functional, random
from common.op import REGISTRY, Op

assert functional, random  # they define the ops

Rng = np.random.Generator
Samples = Callable[[Rng, Any], list[tuple[tuple[np.ndarray, ...], dict[str, Any]]]]

_SHAPES: dict[int, list[tuple[tuple[int, ...], ...]]] = {
    1: [((4, 3),), ((),), ((1, 5),)],
    2: [((4, 3), (4, 3)), ((4, 3), (3,)), ((4, 1), (1, 3)), ((), (5,))],
    3: [((4, 3), (4, 3), (4, 3)), ((4, 3), (3,), (4, 1))],
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


def indices(rng: Rng, shape: tuple[int, ...], limit: int) -> np.ndarray:
    """int64 in [0, limit), with repetitions."""
    return rng.integers(0, limit, shape)


_DOMAINS = {"log": positive, "sqrt": positive, "rsqrt": positive, "pow": positive, "log1p": above_minus_one}


def _elementwise(op: Op) -> Samples:
    draw = truth if op.domain == "bool" else _DOMAINS.get(op.name, away_from_zero)
    draws = [truth if name == "condition" else draw for name in op.inputs]

    def samples(rng: Rng, dtype: Any) -> list[Any]:
        shapes = _SHAPES[len(draws)]
        return [(tuple(d(rng, s, dtype) for d, s in zip(draws, case, strict=True)), {}) for case in shapes]

    return samples


def _reduction(rng: Rng, dtype: Any) -> list[Any]:
    cases: list[tuple[int, ...]] = [(0,), (1,), (2,), (0, 1), (0, 2), (0, 1, 2), ()]
    attrs = [{"dim": dim, "keepdim": keep} for dim in cases for keep in (False, True)]
    return [((away_from_zero(rng, (3, 4, 5), dtype),), a) for a in attrs]


def _one(*shape: int, **attrs: Any) -> Samples:
    return lambda rng, dtype: [((away_from_zero(rng, shape, dtype),), attrs)]


def _indexed(x: tuple[int, ...], index: tuple[int, ...], limit: int, **attrs: Any) -> Samples:
    return lambda rng, dtype: [((away_from_zero(rng, x, dtype), indices(rng, index, limit)), attrs)]


def _none(**attrs: Any) -> Samples:
    return lambda rng, dtype: [((), {"dtype": np.dtype(dtype), **attrs})]


def _draws(rng: Rng, dtype: Any) -> list[Any]:
    state = (np.array(rng.integers(0, 2**62)), np.array(rng.integers(0, 2**40)))
    return [(state, {"shape": shape, "dtype": np.dtype(dtype)}) for shape in [(), (3,), (4, 5)]]


def _products(*lead: int) -> Samples:
    def samples(rng: Rng, dtype: Any) -> list[Any]:
        out = []
        for a in (False, True):
            for b in (False, True):
                left, right = ((3, 4), (4, 3))[a], ((4, 5), (5, 4))[b]
                operands = tuple(away_from_zero(rng, (*lead, *s), dtype) for s in (left, right))
                out.append((operands, {"trans_a": a, "trans_b": b}))
        return out

    return samples


def _join(*makers: Samples) -> Samples:
    return lambda rng, dtype: [case for make in makers for case in make(rng, dtype)]


_TABLE: dict[str, Samples] = {
    "to": lambda rng, dtype: [
        ((away_from_zero(rng, (5,), dtype),), {"dtype": np.dtype(d), "x_dtype": np.dtype(dtype)})
        for d in ("float32", "float64")
    ],
    "reshape": _join(_one(3, 4, new_shape=(2, 6)), _one(3, 4, new_shape=(12,)), _one(new_shape=(1, 1))),
    "permute": _join(_one(2, 3, 4, dims=(2, 0, 1)), _one(2, 3, dims=(1, 0))),
    "expand": _join(_one(3, 1, new_shape=(2, 3, 4)), _one(new_shape=(3,))),
    "slice": _join(_one(5, 7, starts=(1, 0), sizes=(3, 4), steps=(1, 2)), _one(5, starts=(4,), sizes=(0,), steps=(1,))),
    "unslice": _join(
        _one(3, 4, shape=(5, 8), starts=(1, 0), steps=(1, 2)), _one(2, shape=(2,), starts=(0,), steps=(1,))
    ),
    "gather": _join(_indexed((4, 5), (4, 3), 5, dim=1), _indexed((4, 5, 2), (6, 5, 2), 4, dim=0)),
    "scatter_zeros": _join(
        _indexed((4, 3), (4, 3), 5, dim=1, extent=5), _indexed((6, 5, 2), (6, 5, 2), 4, dim=0, extent=4)
    ),
    "index_select": _join(_indexed((4, 5), (7,), 4, dim=0), _indexed((4, 5), (2, 3), 5, dim=1)),
    "put_zeros": _join(_indexed((7, 5), (7,), 4, dim=0, extent=4), _indexed((4, 2, 3), (2, 3), 5, dim=1, extent=5)),
    "pick": _join(_indexed((6, 5), (6,), 5), _indexed((5,), (), 5)),
    "spread": _join(_indexed((6,), (6,), 5, extent=5), _indexed((), (), 5, extent=5)),
    "argmax": _join(_one(4, 5), _one(7)),
    "argmin": _join(_one(4, 5), _one(7)),
    "mm": _products(),
    "bmm": _products(2),
    "full": _join(_none(shape=(3, 4), value=1.5), _none(shape=(), value=-0.0)),
    "arange": lambda rng, dtype: [
        ((), {"start": 2, "step": 3, "count": 7}),
        ((), {"start": 5, "step": -2, "count": 0}),
    ],
    "eye": _none(rows=3, columns=5),
    "rand": _draws,
    "randn": _draws,
    "softmax": _join(_one(4, 5, dim=1), _one(4, 5, dim=0)),
    "log_softmax": _join(_one(4, 5, dim=1), _one(4, 5, dim=0)),
    "logsumexp": _join(_one(4, 5, dim=(1,), keepdim=False), _one(4, 5, dim=(0, 1), keepdim=True)),
    "mean": _reduction,
    "normalize": _join(_one(4, 5, dim=(1,), eps=1e-5), _one(2, 3, 4, dim=(1, 2), eps=1e-3)),
}


def _cat(rng: Rng, dtype: Any, count: int) -> list[Any]:
    return [(tuple(away_from_zero(rng, (2, n + 1), dtype) for n in range(count)), {"dim": 1})]


def samples_of(op: Op) -> Samples:
    """The samples of an op, made by kind where the table names none.

    Raises
    ------
    KeyError : an op that brings none and needs some; `constant`, which has neither operands nor a kernel.
    """
    given: Samples | None = getattr(op, "samples", None)
    if given is not None:
        return given
    if op.name in _TABLE:
        return _TABLE[op.name]
    if op.node_name == "CatBackward0":
        return lambda rng, dtype: _cat(rng, dtype, len(op.inputs))
    if op.kind == "elementwise":
        return _elementwise(op)
    if op.kind == "reduction":
        return _reduction
    raise KeyError(f"op {op.name} brings no samples")


for _op in REGISTRY.values():
    if _op.name != "constant":
        _op.samples = samples_of(_op)
