"""Draws of indices in proportion to weights, by ops on arrays; with replacement by one kernel."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from common.core import mode
from common.core.dispatch import NO_ATTRS, known_attrs
from common.core.dtypes import float64, int64
from common.core.errors import ArgumentError
from common.core.op import REGISTRY, NativeCall
from common.core.spec import Spec
from common.evaluate import kernels
from common.evaluate.native_results import in_a_row
from common.evaluate.specialise import run
from common.kernels.arrays.philox import uniform_source
from common.kernels.arrays.weights import weighted_draws_source
from common.random.generator import DrawPlan, Generator, default_generator, draw
from common.random.sampling import ends, require
from common.tensor.base import TensorBase


def chosen(weights: np.ndarray, count: int, replacement: bool, generator: Generator | None) -> Any:
    """What `multinomial` draws, by the same ops on arrays; `weights` in float64."""
    if replacement:
        running = run(REGISTRY["cumsum"], (weights,), known_attrs(None, dim=weights.ndim - 1, reverse=False))
        u = draw("rand", (*weights.shape[:-1], count), float64, generator)
        places = run(REGISTRY["mul"], (u, running[..., -1:]), NO_ATTRS)
        return run(REGISTRY["searchsorted"], (running, places), known_attrs(None, right=True))
    waits = -run(REGISTRY["log1p"], (-draw("rand", weights.shape, float64, generator),), NO_ATTRS)
    odds = run(REGISTRY["div"], (weights, np.maximum(waits, 2.0**-54)), NO_ATTRS)
    return run(REGISTRY["top"], (odds,), known_attrs(None, k=count, largest=True, in_order=True))


def chosen_at_once(weights: np.ndarray, count: int, generator: Generator | None) -> np.ndarray | None:
    """What `multinomial` draws with replacement, outside a trace; None, and no draw, for what is no distribution."""
    of = generator or default_generator
    if type(of) is not Generator or mode.current_trace() is not None or not weights.flags.carray:
        return None
    plan = _plan(weights.shape, weights.dtype, count)
    found: np.ndarray | None = plan and of.take(plan, weights)
    return found


@lru_cache(maxsize=256)
def _plan(shape: tuple[int, ...], dtype: np.dtype, count: int) -> DrawPlan | None:
    if len(shape) not in (1, 2) or shape[-1] == 0 or dtype.kind != "f":
        return None
    *lead, n = shape
    draws = count * prod(lead)
    held = 8 * (draws + n)
    outs = [Spec((*lead, count), int64)]
    calls = [
        NativeCall(uniform_source(float64), "uniform", (draws,), (0, 1), held),
        NativeCall(weighted_draws_source(dtype), "weighted_draws", (prod(lead), n, count), (2, 3), held),
    ]
    state = (), int64
    builtin = in_a_row(calls, (state, state, (shape, dtype)), outs)
    if builtin is not None:
        return DrawPlan(builtin, draws)
    uniform, weighted = [kernels.compiled(call.source, call.name) for call in calls]

    def drawn(key: np.ndarray, offset: np.ndarray, weights: np.ndarray) -> np.ndarray | None:
        y, scratch = np.empty(outs[0].shape, int64), kernels.scratch(held)
        uniform(key, offset, scratch, *calls[0].ints)
        return None if weighted(weights, y, scratch, *calls[1].ints) else y

    return DrawPlan(drawn, draws)


def require_weights(x: TensorBase, needed: int) -> None:
    """Refuse weights that are no distribution, or too few of them above 0."""
    if x.ndim == 1 and needed == 1:
        least, most = ends(x.payload)
        if least >= 0 and 0 < most < np.inf:
            return
    require(
        x,
        lambda a: (a >= 0) & (a < np.inf),
        "invalid multinomial distribution: probability tensor contains either `inf`, `nan` or element < 0: {}",
    )
    if x.payload.size:
        if x.payload.max(-1).min() == 0:
            raise ArgumentError("invalid multinomial distribution (sum of probabilities <= 0)")
        if needed > 1 and x.payload.min() == 0 and (above := int((x.payload > 0).sum(-1).min())) < needed:
            raise ArgumentError(
                "invalid multinomial distribution (with replacement=False, not enough non-negative category to "
                f"sample): {needed} draws from {above} weights above 0"
            )
