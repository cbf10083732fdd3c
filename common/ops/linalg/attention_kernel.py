"""Attention over batches of matrices as one kernel, whose rows of scores never lie in memory all at once."""

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
from common.core.unbroadcast import reshaped
from common.ops._define import kernel
from common.ops._samples import Rng, away_from_zero
from common.ops.linalg.matmul import bmm_
from common.ops.math.arithmetic import ones_like
from common.ops.math.compare import eq, where
from common.ops.reduce.reductions import sum_
from common.ops.reduce.softmax import softmax_
from common.ops.shape.diagonal import tril_
from common.ops.shape.view import reshape

_SIZES = (((2, 3, 4), (2, 5, 4), (2, 5, 3)), ((1, 5, 2), (1, 5, 2), (1, 5, 2)), ((2, 4, 3), (2, 2, 3), (2, 2, 4)))


def check(query: Spec, key: Spec, value: Spec) -> None:
    """Check operands of attention.

    Raises
    ------
    ShapeError : other than three dimensions, or sizes that do not fit.
    DTypeError : other than one dtype of floats.
    """
    for x in (query, key, value):
        if x.ndim != 3:
            raise ShapeError(f"attention: expected a 3-D tensor, got {x.ndim}-D of shape {tuple(x.shape)}")
        if x.dtype != query.dtype or x.dtype.kind != "f":
            raise DTypeError(f"attention: expected operands of one float dtype, but got: {query.dtype} and {x.dtype}")
    sizes = (query.shape[0], key.shape[0]), (query.shape[0], value.shape[0]), (query.shape[2], key.shape[2])
    if any(not same(m, n) and m != n for m, n in (*sizes, (key.shape[1], value.shape[1]))):
        raise ShapeError(f"attention: {query.shape}, {key.shape} and {value.shape} do not fit")


def _attention_spec(query: Spec, key: Spec, value: Spec, *, causal: bool) -> Any:
    check(query, key, value)
    return Spec((*query.shape[:2], value.shape[2]), query.dtype)


def _backward_spec(query: Spec, key: Spec, value: Spec, cotangent: Spec, *, causal: bool) -> Any:
    check(query, key, value)
    return tuple(Spec(x.shape, x.dtype) for x in (query, key, value))


def _ints(specs: Sequence[Spec], causal: bool) -> tuple[Any, ...]:
    query, _, value = specs[:3]
    return (*query.shape[:2], value.shape[1], query.shape[2], value.shape[2], int(causal))


def _native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
    from common.kernels.arrays import attention_blocks

    dtype, ints = specs[0].dtype, _ints(specs, **attrs)
    scratch = attention_blocks.forward_scratch(ints[2], dtype)
    return [NativeCall(attention_blocks.forward_source(dtype), "attention", ints, scratch=scratch)]


def _backward_native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
    from common.kernels.arrays import attention_blocks

    dtype, ints = specs[0].dtype, _ints(specs, **attrs)
    scratch = attention_blocks.backward_scratch(ints[2], ints[3], ints[4], dtype)
    return [NativeCall(attention_blocks.backward_source(dtype), "attention_backward", ints, scratch=scratch)]


def _scores(query: np.ndarray, key: np.ndarray, causal: bool) -> np.ndarray:
    from common.kernels.arrays import gemm

    scores = gemm.oracle(query, key, False, True)
    if causal:
        scores[..., np.arange(key.shape[1]) > np.arange(query.shape[1])[:, None]] = -math.inf
    return scores


def _sums(x: np.ndarray) -> np.ndarray:
    from common.kernels.arrays import sums

    return np.array([[sums.sum_oracle(row) for row in rows] for rows in x], x.dtype).reshape(x.shape[:-1])


def _oracle(query: np.ndarray, key: np.ndarray, value: np.ndarray, causal: bool) -> Any:
    from common.kernels.arrays import gemm

    return gemm.oracle(oracle_weights(_scores(query, key, causal)), value)


def oracle_weights(scores: np.ndarray, blind: Any = False) -> Any:
    """Softmax of rows of scores in numpy; 0 in rows that are `blind`."""
    from common.compiler.primitives import evaluate
    from common.core.op import REGISTRY

    top = scores.max(-1) if scores.shape[-1] else np.zeros(scores.shape[:-1], scores.dtype)
    top = np.where(blind, scores.dtype.type(0), top)
    raised = np.asarray(evaluate(REGISTRY["exp"].scalar, scores - top[..., None]))
    with np.errstate(invalid="ignore"):
        weights = raised / _sums(raised)[..., None]
    return np.where(np.broadcast_to(np.asarray(blind)[..., None], weights.shape), scores.dtype.type(0), weights)


def _backward_oracle(
    query: np.ndarray, key: np.ndarray, value: np.ndarray, cotangent: np.ndarray, causal: bool
) -> Any:
    return oracle_gradients(oracle_weights(_scores(query, key, causal)), query, key, value, cotangent)


def oracle_gradients(
    weights: np.ndarray, query: np.ndarray, key: np.ndarray, value: np.ndarray, cotangent: np.ndarray
) -> Any:
    """Gradients by query, key and value in numpy."""
    from common.kernels.arrays import gemm

    slopes = gemm.oracle(cotangent, value, False, True)
    slopes = weights * (slopes - _sums(slopes * weights)[..., None])
    return gemm.oracle(slopes, key), gemm.oracle(slopes, query, True), gemm.oracle(weights, cotangent, True)


def _rule(g: Any, query: Any, key: Any, value: Any, causal: bool) -> Any:
    return attention_backward_(query, key, value, g, causal=causal)


def batched_product(a: Any, b: Any, trans_a: bool = False, trans_b: bool = False) -> Any:
    """Products of matrices (batch, m, k) and (batch, k, n)."""
    return bmm_(a, b, trans_a=trans_a, trans_b=trans_b)


def row_sums(x: Any) -> Any:
    """Sums over the last dimension, which stays."""
    return sum_(x, dim=(2,), keepdim=True)


def _plus(x: Any, y: Any) -> Any:
    return y if x is None else x if y is None else x + y


def _backward_rule(g: Any, query: Any, key: Any, value: Any, cotangent: Any, causal: bool) -> Any:
    scores = batched_product(query, key, trans_b=True)
    if causal:
        scores = where(eq(tril_(ones_like(scores), diagonal=0), 0), -math.inf, scores)
    return backward_gradients(g, query, key, value, cotangent, softmax_(scores, dim=2))[:4]


def backward_gradients(g: Any, query: Any, key: Any, value: Any, cotangent: Any, weights: Any) -> Any:
    """The gradients of ``sum(a dq + b dk + c dv)``; P are the weights, H = h v^T, and D = P (H - S(H P)).

    With W = a k^T + q b^T, w = S(W P) and Y = P (W - w): dh = Y v + P c and dv = Y^T h. With Z = W D / P - w H + h c^T
    and X = P (Z - S(Z P)): dq = X k + D b and dk = X^T q + D^T a. X, the last, is the gradient of what is added to the
    scores.
    """
    a, b, c = g
    slopes = batched_product(cotangent, value, trans_b=True)
    centred = slopes - row_sums(slopes * weights)
    inner = None if a is None else batched_product(a, key, trans_b=True)
    inner = _plus(inner, None if b is None else batched_product(query, b, trans_b=True))
    to_weights = to_value = to_cotangent = None
    if inner is not None:
        mean = row_sums(inner * weights)
        turned = weights * (inner - mean)
        to_value, to_cotangent = batched_product(turned, cotangent, trans_a=True), batched_product(turned, value)
        to_weights = inner * centred - mean * slopes
    if c is not None:
        to_cotangent = _plus(to_cotangent, batched_product(weights, c))
        to_weights = _plus(to_weights, batched_product(cotangent, c, trans_b=True))
    to_scores = weights * (to_weights - row_sums(to_weights * weights))
    to_query, to_key = batched_product(to_scores, key), batched_product(to_scores, query, trans_a=True)
    both = weights * centred
    if b is not None:
        to_query = to_query + batched_product(both, b)
    if a is not None:
        to_key = to_key + batched_product(both, a, trans_a=True)
    return to_query, to_key, to_value, to_cotangent, to_scores


def _samples(rng: Rng, dtype: Any) -> list[Any]:
    return [
        (tuple(away_from_zero(rng, shape, dtype) for shape in shapes), {"causal": bool(i % 2)})
        for i, shapes in enumerate(_SIZES)
    ]


def _backward_samples(rng: Rng, dtype: Any) -> list[Any]:
    found = []
    for (query, key, value), attrs in _samples(rng, dtype):
        g = away_from_zero(rng, (*query.shape[:2], value.shape[2]), dtype)
        found.append(((query, key, value, g), attrs))
    return found


attention_: Op = kernel(
    "attention", ("query", "key", "value"), _attention_spec, _native, _oracle,
    joint_rules(_rule, 3), attrs=("causal",), samples=_samples, product=True,
    node_name="ScaledDotProductFlashAttentionForCpu",
    doc="softmax(q k^T) v; if causal, row i sees the keys 0 ... i only. With weights P, H = g v^T and D = "
        "P (H - sum(H P)): d/dq = D k, d/dk = D^T q, d/dv = P^T g. Source: Dao and others, FlashAttention, 2022.",
)  # fmt: skip

attention_backward_: Op = kernel(
    "attention_backward", ("query", "key", "value", "cotangent"), _backward_spec, _backward_native,
    _backward_oracle, joint_rules(_backward_rule, 4), nout=3, attrs=("causal",), samples=_backward_samples,
    product=True, node_name="ScaledDotProductFlashAttentionForCpuBackward",
    doc="Gradients of sum(h attention(q, k, v)). Its own: `_backward_rule`.",
)  # fmt: skip


def is_one_kernel(query: Any, key: Any, value: Any) -> bool:
    """Whether operands fit, as batches of matrices of floats; products of vectors have another order."""
    if not query.dtype == key.dtype == value.dtype or query.dtype.kind != "f":
        return False
    (*lead, m, d), (*of_key, n, width), (*of_value, rows, out) = query.shape, key.shape, value.shape
    if len(lead) != len(of_key) or len(lead) != len(of_value):
        return False
    pairs = zip((*lead, *lead, d, n), (*of_key, *of_value, width, rows), strict=True)
    if any(not same(x, y) and x != y for x, y in pairs):
        return False
    return not any(size in (0, 1) for size in (m, n, d, out))


def in_blocks(query: Any, key: Any, value: Any, causal: bool) -> Any:
    """Attention without a mask, a block of rows after the other."""
    lead = query.shape[:-2]
    flat = [x if len(lead) == 1 else reshape(x, (numel(lead), *x.shape[-2:])) for x in (query, key, value)]
    y = attention_(*flat, causal=bool(causal))
    return y if len(lead) == 1 else reshaped(y, (*lead, *y.shape[1:]), attention_.node_name)


__all__: list[str] = []
