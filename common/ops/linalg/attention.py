"""Scaled dot-product attention."""

from __future__ import annotations

import math
from typing import Any

from common.core.errors import ArgumentError, ShapeError
from common.ops.index.advanced_keys import along
from common.ops.linalg.matmul import matmul
from common.ops.math.compare import le, where
from common.ops.reduce.softmax import softmax
from common.ops.shape.view import transpose


def scaled_dot_product_attention(
    query: Any,
    key: Any,
    src: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: Any = None,
) -> Any:
    """softmax(query key^T scale + mask) value.

    Parameters
    ----------
    query : (..., n, width)
    key : (..., m, width)
    src : `value`, (..., m, out).
    attn_mask : (..., n, m) truth values, where a key may be looked at; or numbers that are added; or None.
    dropout_p : part of the weights that is set to 0, the others being scaled.
    is_causal : row i sees the keys 0 ... i only.
    scale : 1 / sqrt(width) by default.

    Returns
    -------
    tensor : (..., n, out).

    Raises
    ------
    ShapeError : sizes that do not fit.
    ArgumentError : `attn_mask` together with `is_causal`.

    References
    ----------
    Vaswani and others, Attention is all you need, 2017.
    """
    if min(query.ndim, key.ndim, src.ndim) < 2:
        raise ShapeError(
            "scaled_dot_product_attention(): Expected query, key, and value to all be at least 2 dimensional, but got "
            f"{query.ndim}, {key.ndim} and {src.ndim}"
        )
    if is_causal and attn_mask is not None:
        raise ArgumentError("scaled_dot_product_attention(): Explicit attn_mask should not be set when is_causal=True")
    width = query.shape[-1]
    factor = scale if scale is not None else 1 / math.sqrt(int(width)) if int(width) else 1.0
    scores = matmul(query * factor, transpose(key, -2, -1))
    if is_causal:
        attn_mask = le(along(scores.shape[-1], 0), along(scores.shape[-2], 1))
    if attn_mask is not None:
        scores = where(attn_mask, scores, -math.inf) if attn_mask.dtype.kind == "b" else scores + attn_mask
    weights = softmax(scores, -1)
    if dropout_p:
        from common.random.generator import dropout

        weights = dropout(weights, dropout_p)
    return matmul(weights, src)


__all__ = ["scaled_dot_product_attention"]
