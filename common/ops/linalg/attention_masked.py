"""Attention under a mask as one kernel: bools that tell what a row sees, or numbers that are added to the scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from common.core.errors import DTypeError, ShapeError
from common.core.op import NativeCall, Op
from common.core.rule_code import joint_rules
from common.core.sizes import same
from common.core.spec import Spec, numel
from common.core.unbroadcast import reshaped, sum_to
from common.ops._define import kernel
from common.ops._samples import Rng, away_from_zero
from common.ops.linalg.attention_kernel import (
    backward_gradients,
    batched_product,
    check,
    oracle_gradients,
    oracle_weights,
    row_sums,
)
from common.ops.math.compare import eq, logical_not, logical_or, where
from common.ops.reduce.softmax import softmax
from common.ops.reduce.truth import all, any
from common.ops.shape.view import expand, reshape

_SIZES = (
    ((2, 3, 4), (2, 5, 4), (2, 5, 3), (2, 3, 5)), ((2, 5, 2), (2, 6, 2), (2, 6, 2), (1, 1, 6)),
    ((4, 4, 3), (4, 2, 3), (4, 2, 4), (2, 4, 2)),
)  # fmt: skip


def masked_softmax(scores: Any, mask: Any) -> Any:
    """Softmax of masked scores over the last dimension; 0 in rows that see nothing."""
    if mask.dtype.kind == "b":
        blind = logical_not(any(mask, -1, True))
        scores = where(logical_or(mask, blind), scores, -math.inf)  # no row of -inf only: its softmax is nan
    else:
        blind = all(eq(mask, -math.inf), -1, True)
        scores = where(blind, 0.0, scores + mask)
    return where(blind, 0.0, softmax(scores, -1))


def _check(query: Spec, key: Spec, value: Spec, mask: Spec) -> None:
    check(query, key, value)
    if mask.ndim != 3:
        raise ShapeError(f"attention: expected a 3-D mask, got {mask.ndim}-D of shape {tuple(mask.shape)}")
    if mask.dtype.kind != "b" and mask.dtype != query.dtype:
        raise DTypeError(f"attention: expected a mask of bool or {query.dtype}, but got: {mask.dtype}")
    (count, rows, columns), (batch, m, _) = mask.shape, query.shape
    fits = same(count, batch) or not batch or (count and batch % count == 0)
    n = key.shape[1]
    if not fits or not (same(rows, m) or rows in (1, m)) or not (same(columns, n) or columns == n):
        raise ShapeError(f"attention: a mask of {mask.shape} does not fit {query.shape} and {key.shape}")


def _masked_spec(query: Spec, key: Spec, value: Spec, mask: Spec) -> Any:
    _check(query, key, value, mask)
    return Spec((*query.shape[:2], value.shape[2]), query.dtype)


def _backward_spec(query: Spec, key: Spec, value: Spec, mask: Spec, cotangent: Spec) -> Any:
    _check(query, key, value, mask)
    return tuple(Spec(x.shape, x.dtype) for x in (query, key, value))


def _ints(specs: Sequence[Spec]) -> tuple[Any, ...]:
    query, _, value, mask = specs[:4]
    return (*query.shape[:2], value.shape[1], query.shape[2], value.shape[2], 0, *mask.shape[:2])


def _native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
    from common.kernels.arrays import attention_blocks

    dtype, mask, ints = specs[0].dtype, specs[3].dtype, _ints(specs)
    scratch = attention_blocks.forward_scratch(ints[2], dtype)
    source = attention_blocks.forward_source(dtype, mask=mask)
    return [NativeCall(source, attention_blocks.kernel_name(mask), ints, scratch=scratch)]


def _backward_native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
    from common.kernels.arrays import attention_blocks

    dtype, mask, ints = specs[0].dtype, specs[3].dtype, _ints(specs)
    scratch = attention_blocks.backward_scratch(ints[2], ints[3], ints[4], dtype)
    source = attention_blocks.backward_source(dtype, mask=mask)
    return [NativeCall(source, attention_blocks.kernel_name(mask, backward=True), ints, scratch=scratch)]


def _scores(query: np.ndarray, key: np.ndarray, mask: np.ndarray) -> tuple[Any, Any]:
    """Masked scores, and which of their rows see nothing."""
    from common.kernels.arrays import gemm

    scores = gemm.oracle(query, key, False, True)
    items = [mask[i * len(mask) // len(query)] for i in range(len(query))]
    spread = np.broadcast_to(np.stack(items) if items else mask[:0], scores.shape)
    if mask.dtype.kind == "b":
        return np.where(spread, scores, scores.dtype.type(-math.inf)), ~spread.any(-1)
    return scores + spread, (spread == -math.inf).all(-1)


def _oracle(query: np.ndarray, key: np.ndarray, value: np.ndarray, mask: np.ndarray) -> Any:
    from common.kernels.arrays import gemm

    return gemm.oracle(oracle_weights(*_scores(query, key, mask)), value)


def _backward_oracle(
    query: np.ndarray, key: np.ndarray, value: np.ndarray, mask: np.ndarray, cotangent: np.ndarray
) -> Any:
    return oracle_gradients(oracle_weights(*_scores(query, key, mask)), query, key, value, cotangent)


def _rule(g: Any, query: Any, key: Any, value: Any, mask: Any) -> Any:
    return masked_backward_(query, key, value, mask, g)


def _spread(mask: Any, batch: Any) -> Any:
    """A mask for every item."""
    count, *sizes = mask.shape
    if same(count, batch) or count == batch:
        return mask
    each = expand(reshape(mask, (count, 1, *sizes)), (count, batch // count, *sizes))
    return reshape(each, (batch, *sizes))


def _weights(query: Any, key: Any, mask: Any) -> Any:
    return masked_softmax(batched_product(query, key, trans_b=True), _spread(mask, query.shape[0]))


def _of_mask(slopes: Any, mask: Any) -> Any:
    """The gradient of a mask: that of the scores, summed over what shares a number."""
    count, rows, columns = mask.shape
    batch, m, _ = slopes.shape
    if not same(count, batch) and count != batch:
        slopes = reshape(slopes, (count, batch // count, m, columns))
        return reshape(sum_to(slopes, (count, 1, rows, columns)), mask.shape)
    return sum_to(slopes, mask.shape)


def _mask_rule(g: Any, query: Any, key: Any, value: Any, mask: Any) -> Any:
    weights = _weights(query, key, mask)
    slopes = batched_product(g, value, trans_b=True)
    blind = all(eq(_spread(mask, query.shape[0]), -math.inf), -1, True)
    return _of_mask(where(blind, 0.0, weights * (slopes - row_sums(slopes * weights))), mask)


def _backward_rule(g: Any, query: Any, key: Any, value: Any, mask: Any, cotangent: Any) -> Any:
    found = backward_gradients(g, query, key, value, cotangent, _weights(query, key, mask))
    of_mask = None if mask.dtype.kind == "b" else _of_mask(found[4], mask)
    return *found[:3], of_mask, found[3]


def _samples(rng: Rng, dtype: Any) -> list[Any]:
    found: list[Any] = []
    for i, (*shapes, of_mask) in enumerate(_SIZES):
        mask = away_from_zero(rng, of_mask, dtype)
        mask = mask > 0 if i % 2 else mask
        found.append(((*(away_from_zero(rng, shape, dtype) for shape in shapes), mask), {}))
    return found


def _backward_samples(rng: Rng, dtype: Any) -> list[Any]:
    return [
        ((*given, away_from_zero(rng, (*given[0].shape[:2], given[2].shape[2]), dtype)), attrs)
        for given, attrs in _samples(rng, dtype)
    ]


masked_: Op = kernel(
    "attention_masked", ("query", "key", "value", "mask"), _masked_spec, _native, _oracle,
    (*joint_rules(_rule, 3), _mask_rule), samples=_samples, product=True,
    node_name="ScaledDotProductFlashAttentionForCpu",
    doc="softmax(q k^T + mask) v, or with -inf where a mask of bools is False; a mask serves equally many items "
        "each, a row of it alone all rows. Gradients of q, k and v: those of `attention`; d/dmask = D, summed.",
)  # fmt: skip

masked_backward_: Op = kernel(
    "attention_masked_backward", ("query", "key", "value", "mask", "cotangent"), _backward_spec, _backward_native,
    _backward_oracle, joint_rules(_backward_rule, 5), nout=3, samples=_backward_samples,
    product=True, node_name="ScaledDotProductFlashAttentionForCpuBackward",
    doc="Gradients of sum(h attention_masked(q, k, v, mask)) by q, k and v. Its own: those of `attention_backward`.",
)  # fmt: skip


def batched_mask(mask: Any, query: Any, key: Any) -> Any:
    """A mask as (count, 1 or m, n), of which each part serves equally many items; None if there is none like that."""
    (*lead, m, _), n = query.shape, key.shape[-2]
    missing = len(lead) + 2 - mask.ndim
    if missing < 0 or mask.ndim < 2 or (mask.dtype.kind != "b" and mask.dtype != query.dtype):
        return None
    (*outer, rows, columns) = (1,) * missing + tuple(mask.shape)
    if not (same(columns, n) or columns == n) or not (same(rows, m) or rows in (1, m)):
        return None
    last = 0  # how many dimensions the mask tells apart
    for i, (x, size) in enumerate(zip(outer, lead, strict=True)):
        if same(x, size) or x == size:
            last = i + 1
        elif x != 1:
            return None
    shape = (*lead[:last], rows, columns)
    apart = reshape(mask, (*outer[:last], rows, columns))
    return reshape(expand(apart, shape), (numel(lead[:last]), rows, columns))


def in_masked_blocks(query: Any, key: Any, value: Any, mask: Any) -> Any:
    """Attention under what `batched_mask` returned, a block of rows after the other."""
    lead = query.shape[:-2]
    flat = [x if len(lead) == 1 else reshape(x, (numel(lead), *x.shape[-2:])) for x in (query, key, value)]
    y = masked_(*flat, mask)
    return y if len(lead) == 1 else reshaped(y, (*lead, *y.shape[1:]), masked_.node_name)


__all__: list[str] = []
