"""Multi-head attention as a function of its weights."""

from __future__ import annotations

import math
from typing import Any

from common.core.dtypes import default_float
from common.core.errors import ArgumentError, DTypeError, ShapeError
from common.core.sizes import same
from common.nn.scaled_attention import scaled_dot_product_attention
from common.ops.create.like import zeros_like
from common.ops.index.advanced_keys import along
from common.ops.linalg.matmul import linear, matmul
from common.ops.math.compare import le, where
from common.ops.reduce.reductions import mean
from common.ops.reduce.softmax import softmax
from common.ops.shape.cat import cat
from common.ops.shape.padding import pad
from common.ops.shape.split import chunk
from common.ops.shape.view import expand, permute, reshape, transpose
from common.random.generator import dropout

NAME = "multi_head_attention_forward"


def multi_head_attention_forward(
    query: Any,
    key: Any,
    src: Any,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Any,
    in_proj_bias: Any,
    bias_k: Any,
    bias_v: Any,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Any,
    out_proj_bias: Any,
    training: bool = True,
    key_padding_mask: Any = None,
    need_weights: bool = True,
    attn_mask: Any = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Any = None,
    k_proj_weight: Any = None,
    v_proj_weight: Any = None,
    static_k: Any = None,
    static_v: Any = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Any, Any]:
    """Attention of several heads, each with its own part of three products, and a product of what they find.

    Parameters
    ----------
    query : (n, batch, width), or without the batch.
    key, src : key and `value`, (m, batch, ...) or without the batch.
    embed_dim_to_check : width.
    num_heads : divides width.
    in_proj_weight : (3 width, width) for query, key and value; None with `use_separate_proj_weight`.
    in_proj_bias : (3 width), or None.
    bias_k, bias_v : (1, 1, width), one more key and its value; or None.
    add_zero_attn : whether there is one more key of zeros with a value of zeros.
    dropout_p : part of the weights that is set to 0 in training.
    out_proj_weight, out_proj_bias : (width, width) and (width); the bias may be None.
    training : whether weights are dropped.
    key_padding_mask : (batch, m) truth values, true for keys that are not looked at; or numbers that are added.
    need_weights : whether the weights are returned.
    attn_mask : (n, m) or (batch heads, n, m), likewise.
    use_separate_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight : weights of query, key and value where these
        differ in width.
    static_k, static_v : (batch heads, m, width / heads), in place of the products of key and value.
    average_attn_weights : whether the weights are the mean over the heads.
    is_causal : says that `attn_mask` lets row i see the keys 0 ... i; where neither other masks nor weights ask for
        the mask itself, it is not read.

    Returns
    -------
    output : (n, batch, width)
    weights : (batch, n, m), or per head (batch, heads, n, m), or None.

    Raises
    ------
    ShapeError : sizes that do not fit.
    DTypeError : a mask of integers.
    ArgumentError : `is_causal` without `attn_mask`.

    References
    ----------
    Vaswani and others, Attention is all you need, 2017.
    """
    batched = _check_ranks(query, key, src, key_padding_mask, attn_mask)
    if is_causal and attn_mask is None:
        raise ArgumentError(f"{NAME}(): Need attn_mask if specifying the is_causal hint.")
    if not batched:
        query, key, src = (x.unsqueeze(1) for x in (query, key, src))
        key_padding_mask = key_padding_mask if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    (n, batch, width), m, shape = query.shape, key.shape[0], tuple(key.shape)
    if int(width) != embed_dim_to_check:
        raise ShapeError(f"{NAME}(): was expecting embedding dimension of {embed_dim_to_check}, but got {int(width)}")
    if num_heads < 1 or embed_dim_to_check % num_heads:
        raise ShapeError(f"{NAME}(): embed_dim {embed_dim_to_check} not divisible by num_heads {num_heads}")
    if not _fit(shape[:2] if use_separate_proj_weight else shape, src.shape) or not _fit((batch,), shape[1:2]):
        raise ShapeError(f"{NAME}(): key shape {shape} does not match value shape {tuple(src.shape)}, or the batch "
                         f"of the query {tuple(query.shape)}")  # fmt: skip
    hidden, mask = _number_mask(key_padding_mask, query, "key_padding_mask"), None
    causal = is_causal and hidden is None and not need_weights
    if attn_mask is not None and not causal:
        mask = _number_mask(attn_mask, query, "attn_mask")
        mask = mask.unsqueeze(0) if mask.ndim == 2 else mask
        if not (_fit(mask.shape, (1, n, m)) or _fit(mask.shape, (batch * num_heads, n, m))):
            raise ShapeError(f"{NAME}(): The shape of the attn_mask is {tuple(attn_mask.shape)}, but should be "
                             f"{(n, m)} or {(batch * num_heads, n, m)}.")  # fmt: skip
    if hidden is not None and not _fit(hidden.shape, (batch, m)):
        raise ShapeError(f"{NAME}(): expecting key_padding_mask shape of {(batch, m)}, but got {tuple(hidden.shape)}")
    if use_separate_proj_weight:
        weights = q_proj_weight, k_proj_weight, v_proj_weight
    else:
        weights = chunk(in_proj_weight, 3)
    biases = (None,) * 3 if in_proj_bias is None else chunk(in_proj_bias, 3)
    q, k, v = (linear(x, w, b) for x, w, b in zip((query, key, src), weights, biases, strict=True))
    more = 0
    if bias_k is not None and bias_v is not None:
        k, v = (cat([x, expand(b, (1, batch, width))]) for x, b in ((k, bias_k), (v, bias_v)))
        more += 1
    head = embed_dim_to_check // num_heads
    q, k, v = (transpose(reshape(x, (x.shape[0], batch * num_heads, head)), 0, 1) for x in (q, k, v))
    k, v = k if static_k is None else static_k, v if static_v is None else static_v
    if add_zero_attn:
        k, v = (cat([x, zeros_like(x[:, :1])], 1) for x in (k, v))
        more += 1
    m = k.shape[1]
    if more:
        mask, hidden = (x if x is None else pad(x, (0, more)) for x in (mask, hidden))
    if hidden is not None:
        hidden = reshape(expand(reshape(hidden, (batch, 1, 1, m)), (batch, num_heads, 1, m)), (batch * num_heads, 1, m))
        mask = hidden if mask is None else mask + hidden
    drop = dropout_p if training else 0.0
    if not need_weights:
        if mask is not None:
            mask = mask.unsqueeze(0) if mask.shape[0] == 1 else reshape(mask, (batch, num_heads, -1, m))
        q, k, v = (reshape(x, (batch, num_heads, x.shape[1], head)) for x in (q, k, v))
        found = permute(scaled_dot_product_attention(q, k, v, mask, drop, causal), (2, 0, 1, 3))
        output = linear(reshape(found, (n, batch, width)), out_proj_weight, out_proj_bias)
        return output if batched else output.squeeze(1), None
    scores = matmul(q * math.sqrt(1.0 / head), transpose(k, -2, -1))
    p = softmax(scores if mask is None else scores + mask, -1)
    if drop:
        p = dropout(p, drop)
    found = reshape(transpose(matmul(p, v), 0, 1), (n, batch, width))
    output = linear(found, out_proj_weight, out_proj_bias)
    p = reshape(p, (batch, num_heads, n, m))
    p = mean(p, 1) if average_attn_weights else p
    return (output, p) if batched else (output.squeeze(1), p.squeeze(0))


def causal_mask(n: Any, dtype: Any = None) -> Any:
    """(n, n) numbers to add to scores: 0 up to the diagonal, -inf behind it; float32 by default."""
    return where(le(along(n, 0), along(n, 1)), 0.0, -math.inf).to(default_float() if dtype is None else dtype)


def _fit(a: Any, b: Any) -> bool:
    return len(a) <= len(b) and all(same(m, n) or m == n for m, n in zip(a, b))


def _check_ranks(query: Any, key: Any, src: Any, hidden: Any, mask: Any) -> bool:
    """Whether there is a batch.

    Raises
    ------
    ShapeError : numbers of dimensions that do not belong together.
    """
    if query.ndim not in (2, 3):
        raise ShapeError(
            f"{NAME}(): query should be unbatched 2D or batched 3D tensor but received {query.ndim}-D query tensor"
        )
    what = "batched (3-D)" if query.ndim == 3 else "unbatched (2-D)"
    if key.ndim != query.ndim or src.ndim != query.ndim:
        raise ShapeError(f"{NAME}(): For {what} `query`, expected `key` and `value` to be {query.ndim}-D but found "
                         f"{key.ndim}-D and {src.ndim}-D tensors respectively")  # fmt: skip
    if hidden is not None and hidden.ndim != query.ndim - 1:
        raise ShapeError(f"{NAME}(): For {what} `query`, expected `key_padding_mask` to be `None` or "
                         f"{query.ndim - 1}-D but found {hidden.ndim}-D tensor instead")  # fmt: skip
    if mask is not None and mask.ndim not in (2, 3):
        raise ShapeError(f"{NAME}(): For {what} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found "
                         f"{mask.ndim}-D tensor instead")  # fmt: skip
    return bool(query.ndim == 3)


def _number_mask(mask: Any, query: Any, name: str) -> Any:
    """A mask as numbers to add: -inf where a truth value is true.

    Raises
    ------
    DTypeError : a mask of integers.
    """
    if mask is None or mask.dtype.kind == "f":
        return mask
    if mask.dtype.kind != "b":
        raise DTypeError(f"{NAME}(): only bool and floating types of {name} are supported, got {mask.dtype}")
    return where(mask, -math.inf, zeros_like(mask, dtype=query.dtype))


__all__ = ["multi_head_attention_forward"]
