"""Transformers: stacks of attention and two products, for encoding a sequence and for decoding another from it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from common.core.devices import on_cpu
from common.core.docstrings import sections_of
from common.core.errors import ArgumentError, ShapeError
from common.core.int_arguments import copies
from common.core.sizes import same
from common.nn.attention import MultiheadAttention, glorot
from common.nn.containers import ModuleList
from common.nn.feature_dropout import Dropout
from common.nn.layers import LayerNorm, Linear
from common.nn.module import Module
from common.nn.multi_head import causal_mask
from common.ops import functional as F


def _get_activation_fn(given: str | Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The function between the two products.

    Raises
    ------
    ArgumentError : a name other than "relu" and "gelu".
    """
    if callable(given):
        return given
    if given not in ("relu", "gelu"):
        raise ArgumentError(f"activation should be relu/gelu, not {given}")
    found: Callable[[Any], Any] = getattr(F, given)
    return found


def _get_clones(module: Module, N: int) -> ModuleList:
    """A list of `N` copies of a module; each has parameters of its own."""
    return ModuleList([copy.deepcopy(module) for _ in range(N)])


class _Layer(Module):
    """The base of encoder and decoder layers: self-attention, two products, normalisations."""

    attentions = 1

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        on_cpu(device, type(self).__name__)
        norms = self.attentions + 1
        for name in ("self_attn", "multihead_attn")[: self.attentions]:
            attention = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, dtype=dtype)
            setattr(self, name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias, dtype=dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, dtype=dtype)
        self.norm_first = norm_first
        for i in range(norms):
            setattr(self, f"norm{i + 1}", LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype))
        for i in range(norms):
            setattr(self, f"dropout{i + 1}", Dropout(dropout))
        self.activation = _get_activation_fn(activation)

    def _around(self, i: int, x: Any, block: Callable[[Any], Any]) -> Any:
        """`x` and what a block makes of it, normalised before the block or after the sum."""
        norm, drop = getattr(self, f"norm{i}"), getattr(self, f"dropout{i}")
        return x + drop(block(norm(x))) if self.norm_first else norm(x + drop(block(x)))

    def _products(self, x: Any) -> Any:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_Layer):
    """Self-attention, then two products with an activation between, each added to its input and normalised.

    Parameters
    ----------
    d_model : width of input and output.
    nhead : number of heads.
    dim_feedforward : width between the two products.
    dropout : probability with which elements and weights of attention are dropped in training.
    activation : "relu", "gelu" or a function.
    layer_norm_eps : added to variances.
    batch_first : whether input and output are (batch, n, width) instead of (n, batch, width).
    norm_first : whether the input of each block is normalised, instead of the sum behind it.
    bias : whether products and normalisations have biases.
    device : None or the CPU.
    dtype : of the parameters, float32 by default.

    Raises
    ------
    ArgumentError : see `MultiheadAttention`; an activation of another name.

    References
    ----------
    Vaswani and others, Attention is all you need, 2017; Xiong and others, On layer normalization in the transformer
    architecture, 2020, for `norm_first`.

    Examples
    --------
    >>> import numpy as np, dynamic as tw
    >>> layer = tw.nn.TransformerEncoderLayer(8, 2, dim_feedforward=16, batch_first=True)
    >>> layer(np.ones((2, 5, 8), np.float32)).shape
    torch.Size([2, 5, 8])
    """

    def forward(self, src: Any, src_mask: Any = None, src_key_padding_mask: Any = None, is_causal: bool = False) -> Any:
        """Encode src (n, batch, d_model); masks as for `MultiheadAttention`, `is_causal` says that of `src_mask`."""

        def attend(x: Any) -> Any:
            return self.self_attn(x, x, x, src_key_padding_mask, False, src_mask, is_causal=is_causal)[0]

        return self._around(2, self._around(1, src, attend), self._products)


@sections_of(TransformerEncoderLayer)
class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to what an encoder has made, then two products, each added to its input.

    References
    ----------
    Vaswani and others, Attention is all you need, 2017.
    """

    attentions = 2

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Any:
        """Decode tgt (n, batch, d_model) with memory (m, batch, d_model); masks as for `MultiheadAttention`."""

        def attend(x: Any) -> Any:
            return self.self_attn(x, x, x, tgt_key_padding_mask, False, tgt_mask, is_causal=tgt_is_causal)[0]

        def look(x: Any) -> Any:
            return self.multihead_attn(
                x, memory, memory, memory_key_padding_mask, False, memory_mask, is_causal=memory_is_causal
            )[0]

        return self._around(3, self._around(2, self._around(1, tgt, attend), look), self._products)


class _LayerStack(Module):
    def __init__(self, layer: Module, num_layers: int, norm: Module | None) -> None:
        super().__init__()
        if not isinstance(layer, Module):
            raise ArgumentError(f"{type(self).__name__}: expected a layer to copy, got {type(layer).__name__}")
        count = copies(num_layers, type(self).__name__, "num_layers")
        self.layers = _get_clones(layer, count)
        self.num_layers, self.norm = num_layers, norm


class TransformerEncoder(_LayerStack):
    """Copies of an encoder layer, one after the other.

    Parameters
    ----------
    encoder_layer : is copied.
    num_layers : how often.
    norm : a module for the result, or None.
    enable_nested_tensor, mask_check : change nothing here: padded positions are computed like others.
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__(encoder_layer, num_layers, norm)
        self.enable_nested_tensor, self.mask_check = enable_nested_tensor, mask_check

    def forward(
        self, src: Any, mask: Any = None, src_key_padding_mask: Any = None, is_causal: bool | None = None
    ) -> Any:
        """Encode src (n, batch, d_model); masks as for `MultiheadAttention`, `is_causal` says that of `mask`."""
        for layer in self.layers:
            src = layer(src, src_mask=mask, is_causal=bool(is_causal), src_key_padding_mask=src_key_padding_mask)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(_LayerStack):
    """Copies of a decoder layer, one after the other.

    Parameters
    ----------
    decoder_layer : is copied.
    num_layers : how often.
    norm : a module for the result, or None.
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__(decoder_layer, num_layers, norm)

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Any:
        """Decode tgt (n, batch, d_model) with memory (m, batch, d_model); masks as for `MultiheadAttention`."""
        for layer in self.layers:
            tgt = layer(
                tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=bool(tgt_is_causal),
                memory_is_causal=memory_is_causal,
            )  # fmt: skip
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder of one sequence, and a decoder of another that looks at what it has made.

    Parameters
    ----------
    d_model : width of inputs and output.
    nhead : number of heads.
    num_encoder_layers, num_decoder_layers : numbers of layers.
    dim_feedforward, dropout, activation : see `TransformerEncoderLayer`.
    custom_encoder, custom_decoder : modules in place of those.
    layer_norm_eps, batch_first, norm_first, bias : see `TransformerEncoderLayer`.
    device : None or the CPU.
    dtype : of the parameters, float32 by default.

    Raises
    ------
    ArgumentError : see `MultiheadAttention`; an activation of another name.

    References
    ----------
    Vaswani and others, Attention is all you need, 2017.

    Examples
    --------
    >>> import numpy as np, dynamic as tw
    >>> model = tw.nn.Transformer(8, 2, 1, 1, dim_feedforward=16)
    >>> model(np.ones((5, 2, 8), np.float32), np.ones((3, 2, 8), np.float32)).shape
    torch.Size([3, 2, 8])
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        options = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias,
                   device, dtype)  # fmt: skip

        def norm() -> LayerNorm:
            return LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)

        self.encoder = custom_encoder if custom_encoder is not None else TransformerEncoder(
            TransformerEncoderLayer(*options), num_encoder_layers, norm()
        )  # fmt: skip
        self.decoder = custom_decoder if custom_decoder is not None else TransformerDecoder(
            TransformerDecoderLayer(*options), num_decoder_layers, norm()
        )  # fmt: skip
        for p in self.parameters():
            if p.ndim == 2:
                p.payload[...] = glorot(p.payload.shape, p.dtype).payload
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def forward(
        self,
        src: Any,
        tgt: Any,
        src_mask: Any = None,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        src_key_padding_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Any:
        """Encode src (m, batch, d_model), and decode tgt (n, batch, d_model) with it, to (n, batch, d_model).

        Masks are those of `MultiheadAttention`, and what is said of them.

        Raises
        ------
        ShapeError : batches or widths that differ.
        """
        batch = 0 if self.batch_first else 1
        if src.ndim == 3 and tgt.ndim == 3 and not _equal(src.shape[batch], tgt.shape[batch]):
            raise ShapeError("the batch number of src and tgt must be equal")
        if not (_equal(src.shape[-1], self.d_model) and _equal(tgt.shape[-1], self.d_model)):
            raise ShapeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )  # fmt: skip

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Any:
        """(sz, sz) numbers to add to scores: 0 up to the diagonal, -inf behind it, so that no row sees later ones."""
        on_cpu(device, "generate_square_subsequent_mask")
        return causal_mask(sz, dtype)


def _equal(m: Any, n: Any) -> bool:
    return same(m, n) or bool(m == n)
