"""Multi-head attention as a module."""

from __future__ import annotations

import math
from typing import Any

from common.core.devices import on_cpu
from common.core.dtypes import default_float
from common.core.errors import ArgumentError
from common.evaluate.specialise import remembered
from common.nn import init
from common.nn.layers import Linear
from common.nn.module import Module
from common.nn.multi_head import multi_head_attention_forward
from common.tensor.leaf import Parameter

_attend = remembered(multi_head_attention_forward)


def glorot(shape: tuple[int, int], dtype: Any = None) -> Parameter:
    """A weight (out, in) drawn from U(-k, k), k = sqrt(6 / (in + out)).

    Source: Glorot and Bengio, Understanding the difficulty of training deep feedforward neural networks, 2010.
    """
    return init.uniform(shape, math.sqrt(6 / max(sum(shape), 1)), dtype)


class NonDynamicallyQuantizableLinear(Linear):
    """A `Linear` with the name under which PyTorch shows the last product of its attention."""


class MultiheadAttention(Module):
    """Attention of several heads: softmax(q k^T / sqrt(width / heads)) v, each on its own products of the operands.

    Parameters
    ----------
    embed_dim : width of query and output.
    num_heads : divides it.
    dropout : probability with which weights are dropped in training.
    bias : whether the products have biases.
    add_bias_kv : whether there is one learned key and value more.
    add_zero_attn : whether there is one key and value of zeros more.
    kdim, vdim : widths of key and value, `embed_dim` by default.
    batch_first : whether operands and output are (batch, n, width) instead of (n, batch, width).
    device : None or the CPU.
    dtype : of the parameters, float32 by default.

    Attributes
    ----------
    in_proj_weight : (3 embed_dim, embed_dim), or None and ``q_proj_weight``, ``k_proj_weight``, ``v_proj_weight`` where
        widths differ; drawn from U(-k, k), k = sqrt(6 / (rows + columns)).
    in_proj_bias : (3 embed_dim), zeros, or None.
    bias_k, bias_v : (1, 1, embed_dim), drawn from N(0, 1 / embed_dim) as PyTorch does, or None.
    out_proj : the last product, a `Linear`.

    Raises
    ------
    ArgumentError : sizes that are not positive, or `num_heads` does not divide `embed_dim`.

    Examples
    --------
    >>> import numpy as np, dynamic as tw
    >>> x = np.ones((2, 5, 8), np.float32)
    >>> y, weights = tw.nn.MultiheadAttention(8, 2, batch_first=True)(x, x, x)
    >>> y.shape, weights.shape
    (torch.Size([2, 5, 8]), torch.Size([2, 5, 5]))
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        on_cpu(device, type(self).__name__)
        if embed_dim <= 0 or num_heads <= 0:
            raise ArgumentError(f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and "
                                f"num_heads={num_heads} instead")  # fmt: skip
        if embed_dim % num_heads:
            raise ArgumentError(f"embed_dim must be divisible by num_heads, got {embed_dim} and {num_heads}")
        self.embed_dim, self.num_heads, self.dropout, self.batch_first = embed_dim, num_heads, dropout, batch_first
        self.kdim, self.vdim = embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim
        self.head_dim, self.add_zero_attn = embed_dim // num_heads, add_zero_attn
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        whole = self._qkv_same_embed_dim
        for name, columns in (("q", embed_dim), ("k", self.kdim), ("v", self.vdim)):
            part = None if whole else glorot((embed_dim, columns), dtype)
            self.register_parameter(f"{name}_proj_weight", part)
        self.register_parameter("in_proj_weight", glorot((3 * embed_dim, embed_dim), dtype) if whole else None)
        kind = default_float() if dtype is None else dtype
        self.register_parameter("in_proj_bias", init.constant(3 * embed_dim, 0, kind) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias, dtype=dtype)
        if bias:
            self.out_proj.bias = init.constant(embed_dim, 0, kind)
        for name in ("bias_k", "bias_v"):
            drawn = init.normal((1, 1, embed_dim), dtype) if add_bias_kv else None
            if drawn is not None:  # PyTorch's rule for a weight of these sizes: fans of embed_dim each
                drawn.payload *= drawn.dtype.type(math.sqrt(1 / embed_dim))
            self.register_parameter(name, drawn)

    def forward(
        self,
        query: Any,
        key: Any,
        value: Any,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Any, Any]:
        """Attend from queries to keys.

        Parameters
        ----------
        query, key, value : (n, batch, width), (m, batch, kdim) and (m, batch, vdim); (batch, n, ...) if `batch_first`;
            or without a batch.
        key_padding_mask : (batch, m) truth values, true for keys that are not looked at; or numbers that are added.
        need_weights : whether the weights are returned.
        attn_mask : (n, m) or (batch heads, n, m), likewise.
        average_attn_weights : whether the weights are the mean over the heads.
        is_causal : says that `attn_mask` is that of `Transformer.generate_square_subsequent_mask`.

        Returns
        -------
        output : as query, of width `embed_dim`.
        weights : (batch, n, m), or per head (batch, heads, n, m), or None.

        Raises
        ------
        ShapeError : sizes that do not fit.
        DTypeError : a mask of integers.
        ArgumentError : `is_causal` without `attn_mask`.
        """
        turned = self.batch_first and query.ndim == 3
        if turned:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        output, weights = _attend(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k,
            self.bias_v, self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias, self.training,
            key_padding_mask, need_weights, attn_mask, not self._qkv_same_embed_dim, self.q_proj_weight,
            self.k_proj_weight, self.v_proj_weight, None, None, average_attn_weights, is_causal,
        )  # fmt: skip
        return output.transpose(0, 1) if turned else output, weights
