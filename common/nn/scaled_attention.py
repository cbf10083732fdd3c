"""Scaled dot-product attention."""

from __future__ import annotations

import math
from typing import Any

from common.core.errors import ArgumentError, ShapeError
from common.ops.index.advanced_keys import along
from common.ops.linalg.attention_kernel import in_blocks, is_one_kernel
from common.ops.linalg.attention_masked import batched_mask, in_masked_blocks, masked_softmax
from common.ops.linalg.matmul import matmul
from common.ops.math.compare import le, where
from common.ops.reduce.softmax import softmax
from common.ops.shape.repeat import repeat_interleave
from common.ops.shape.view import transpose
from common.random.generator import dropout


def scaled_dot_product_attention(
    query: Any,
    key: Any,
    src: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: Any = None,
    enable_gqa: bool = False,
) -> Any:
    """softmax(query key^T scale + mask) value; 0 for a query that may look at no key.

    Parameters
    ----------
    query : (..., n, width)
    key : (..., m, width)
    src : `value`, (..., m, out).
    attn_mask : (..., n, m) truth values, where a key may be looked at; or numbers that are added; or None.
    dropout_p : part of the weights that is set to 0, the others being scaled.
    is_causal : row i sees the keys 0 ... i only.
    scale : 1 / sqrt(width) by default.
    enable_gqa : whether (..., heads, m, width) of key and value may have fewer heads than query, each for the same
        number of the query's.

    Returns
    -------
    tensor : (..., n, out).

    Raises
    ------
    ShapeError : sizes that do not fit.
    ArgumentError : `attn_mask` together with `is_causal`.

    References
    ----------
    Vaswani and others, Attention is all you need, 2017; Ainslie and others, Grouped-query attention, 2023.
    """
    if min(query.ndim, key.ndim, src.ndim) < 2:
        raise ShapeError(
            "scaled_dot_product_attention(): Expected query, key, and value to all be at least 2 dimensional, but got "
            f"{query.ndim}, {key.ndim} and {src.ndim}"
        )
    if is_causal and attn_mask is not None:
        raise ArgumentError("scaled_dot_product_attention(): Explicit attn_mask should not be set when is_causal=True")
    if enable_gqa:
        key, src = _for_every_head(query, key, "key"), _for_every_head(query, src, "value")
    width = query.shape[-1]
    factor = scale if scale is not None else 1 / math.sqrt(int(width)) if int(width) else 1.0
    query = query * factor
    if attn_mask is None and not dropout_p and is_one_kernel(query, key, src):
        return in_blocks(query, key, src, is_causal)
    if attn_mask is not None and not dropout_p and is_one_kernel(query, key, src):
        mask = batched_mask(attn_mask, query, key)
        if mask is not None:
            return in_masked_blocks(query, key, src, mask)
    scores = matmul(query, transpose(key, -2, -1))
    if is_causal:
        scores = where(le(along(scores.shape[-1], 0), along(scores.shape[-2], 1)), scores, -math.inf)
    weights = softmax(scores, -1) if attn_mask is None else masked_softmax(scores, attn_mask)
    if dropout_p:
        weights = dropout(weights, dropout_p)
    return matmul(weights, src)


def _for_every_head(query: Any, x: Any, name: str) -> Any:
    """Heads of key or value, as often as the query has heads for one of them.

    Raises
    ------
    ShapeError : no dimension of heads, or numbers of which one does not divide the other.
    """
    if query.ndim < 3 or x.ndim < 3:
        raise ShapeError(
            f"scaled_dot_product_attention(): enable_gqa needs query and {name} of at least 3 dimensions, (..., heads, "
            f"length, width), but got {query.ndim} and {x.ndim}"
        )
    heads, few = int(query.shape[-3]), int(x.shape[-3])
    if few == heads:
        return x
    if few == 0 or heads % few:
        raise ShapeError(
            f"scaled_dot_product_attention(): Number of heads in key and value must divide the number of heads in "
            f"query, but {name} has {few} and query {heads}"
        )
    return repeat_interleave(x, heads // few, -3)


__all__ = ["scaled_dot_product_attention"]
