"""Attention whose scores a function of the user's changes, and masks: `flex_attention` under PyTorch's names."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from common.core.devices import on_cpu
from common.core.errors import ArgumentError, ShapeError
from common.core.int_arguments import integer
from common.ops import functional as F
from common.ops.create.creation import arange
from common.transforms.vmap import vmap

__all__ = [
    "AuxOutput", "AuxRequest", "BlockMask", "and_masks", "create_block_mask", "create_mask", "flex_attention",
    "noop_mask", "or_masks",
]  # fmt: skip

#: ``mask_mod(b, h, q_idx, kv_idx)``: whether a query attends to a key.
MaskMod = Callable[[Any, Any, Any, Any], Any]
_DEFAULT_SPARSE_BLOCK_SIZE = 128


class AuxRequest(NamedTuple):
    """What `flex_attention` is to return beside its result."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What `flex_attention` returns beside its result; None where it was not asked for."""

    lse: Any = None
    max_scores: Any = None


class BlockMask:
    """Which queries attend to which keys, by a function.

    Parameters
    ----------
    mask_mod : see `create_block_mask`.
    shape : batch, heads, queries and keys.
    block_size : queries and keys of a block.
    """

    def __init__(self, mask_mod: MaskMod, shape: tuple[int, int, int, int], block_size: tuple[int, int]) -> None:
        self.mask_mod, self.shape, self.BLOCK_SIZE = mask_mod, shape, block_size

    @property
    def seq_lengths(self) -> tuple[int, int]:
        """The numbers of queries and of keys."""
        return self.shape[2:]

    def to_dense(self) -> Any:
        """Per block of queries and of keys 1 if a query of it attends to a key: (batch, heads, rows, columns) int32."""
        mask = create_mask(self.mask_mod, *self.shape)
        (queries, keys), (rows, columns) = self.seq_lengths, self.BLOCK_SIZE
        mask = F.pad(mask.int(), (0, -keys % columns, 0, -queries % rows))
        batch, heads, height, width = mask.shape
        return mask.reshape(batch, heads, height // rows, rows, width // columns, columns).amax((3, 5))

    def sparsity(self) -> float:
        """The percentage of pairs that lie in no block in which a query attends to a key; below 0 for pairs beyond."""
        return 100 * (1 - int(self.to_dense().sum()) * math.prod(self.BLOCK_SIZE) / self.numel())

    def numel(self) -> int:
        """The number of pairs of a query and a key."""
        return math.prod(self.shape)

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%)"


def _everywhere(mod: Callable[..., Any], sizes: tuple[Any, ...], *scores: Any) -> Any:
    """What a function of a place, and of the score there, gives at all of them: (batch, heads, queries, keys)."""
    for i in (3, 2, 1, 0):
        mod = vmap(mod, (*(0 for _ in scores), *(0 if i == j else None for j in range(4))))
    return mod(*scores, *(arange(n) for n in sizes))


def create_mask(
    mod_fn: MaskMod, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = "cpu"
) -> Any:  # fmt: skip
    """The mask of a function as a tensor.

    Parameters
    ----------
    mod_fn : ``mask_mod(b, h, q_idx, kv_idx)`` of 0-d tensors of int64; returns one of bool.
    B, H : batch and heads; 1 for None, where the mask is the same for all.
    Q_LEN, KV_LEN : numbers of queries and of keys.
    device : the CPU.

    Returns
    -------
    tensor
        (B, H, Q_LEN, KV_LEN) of bool.
    """
    on_cpu(device, "create_mask")
    return _everywhere(mod_fn, (1 if B is None else B, 1 if H is None else H, Q_LEN, KV_LEN))


def create_block_mask(
    mask_mod: MaskMod,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = "cpu",
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False,
) -> BlockMask:
    """A mask for `flex_attention`.

    Parameters
    ----------
    mask_mod : ``mask_mod(b, h, q_idx, kv_idx)`` of 0-d tensors of int64; returns one of bool.
    B, H : batch and heads; 1 for None, where the mask is the same for all.
    Q_LEN, KV_LEN : numbers of queries and of keys.
    device : the CPU.
    BLOCK_SIZE : of `BlockMask.to_dense`; no block is left out when attention is computed.
    _compile : accepted.

    Examples
    --------
    >>> import dynamic as tw
    >>> create_block_mask(lambda b, h, q, k: q >= k, None, None, 4, 4, BLOCK_SIZE=2)
    BlockMask(shape=(1, 1, 4, 4), sparsity=25.00%)
    """
    on_cpu(device, "create_block_mask")
    if not callable(mask_mod):
        raise ArgumentError(f"create_block_mask(): mask_mod is a function, not {type(mask_mod).__name__}")
    rows, columns = BLOCK_SIZE if isinstance(BLOCK_SIZE, tuple) else (BLOCK_SIZE, BLOCK_SIZE)
    blocks = tuple(integer(size, "create_block_mask", "BLOCK_SIZE") for size in (rows, columns))
    if min(blocks) < 1:
        raise ArgumentError(f"create_block_mask(): BLOCK_SIZE must be at least 1, got {BLOCK_SIZE}")
    return BlockMask(mask_mod, (1 if B is None else B, 1 if H is None else H, Q_LEN, KV_LEN), blocks)


def noop_mask(batch: Any, head: Any, token_q: Any, token_kv: Any) -> Any:
    """A `mask_mod` by which every query attends to every key."""
    return token_q == token_q


def and_masks(*mask_mods: MaskMod) -> MaskMod:
    """A `mask_mod`: where all of them say so."""

    def both(b: Any, h: Any, q: Any, k: Any) -> Any:
        found = noop_mask(b, h, q, k)
        for mod in mask_mods:
            found = found & mod(b, h, q, k)
        return found

    return both


def or_masks(*mask_mods: MaskMod) -> MaskMod:
    """A `mask_mod`: where one of them says so."""

    def either(b: Any, h: Any, q: Any, k: Any) -> Any:
        found = q != q
        for mod in mask_mods:
            found = found | mod(b, h, q, k)
        return found

    return either


def flex_attention(
    query: Any,
    key: Any,
    value: Any,
    score_mod: Callable[..., Any] | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: Any = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """Attention with scores that a function changes, and a mask.

    Parameters
    ----------
    query : (B, H, L, E).
    key : (B, H, S, E); with `enable_gqa` of fewer heads, of which each serves several of `query`.
    value : (B, H, S, V), of the heads of `key`.
    score_mod : ``score_mod(score, b, h, q_idx, kv_idx)`` of 0-d tensors; returns the score to be used.
    block_mask : from `create_block_mask`; a query that attends to no key gets zeros.
    scale : of the products of queries and keys; 1 / sqrt(E) by default.
    return_lse : also return the logarithms of the sums of the exponentials of scores, (B, H, L).
    kernel_options : accepted.
    return_aux : what else to return, as an `AuxOutput`.

    Returns
    -------
    tensor
        (B, H, L, V); with `return_lse` or `return_aux` a pair.

    Raises
    ------
    ShapeError : sizes do not fit.

    Examples
    --------
    >>> import dynamic as tw
    >>> x = tw.arange(8.0).reshape(1, 1, 4, 2)
    >>> causal = create_block_mask(lambda b, h, q, k: q >= k, None, None, 4, 4)
    >>> flex_attention(x, x, x, lambda score, b, h, q, k: score - (q - k), causal)
    tensor([[[[0.0000, 1.0000],
              [1.9994, 2.9994],
              [4.0000, 5.0000],
              [6.0000, 7.0000]]]])
    """
    if not query.ndim == key.ndim == value.ndim == 4:
        raise ShapeError(
            "flex_attention(): query, key and value have 4 dimensions, (batch, heads, length, size), got "
            f"{query.ndim}, {key.ndim} and {value.ndim}"
        )
    heads, queries, size = query.shape[1:]
    if key.shape[1] != heads:
        if not enable_gqa or heads % key.shape[1]:
            raise ShapeError(
                f"flex_attention(): query has {heads} heads, key {key.shape[1]}: give as many, or with enable_gqa=True "
                "a divisor of them"
            )
        key, value = (F.repeat_interleave(x, heads // x.shape[1], 1) for x in (key, value))
    keys = key.shape[2]
    scores = F.matmul(query, key.transpose(-2, -1)) * (1 / math.sqrt(size) if scale is None else scale)
    if score_mod is not None:
        scores = _everywhere(score_mod, tuple(scores.shape), scores)
    if block_mask is not None:
        if block_mask.seq_lengths != (queries, keys):
            raise ShapeError(
                f"flex_attention(): block_mask is of {block_mask.seq_lengths} queries and keys, not {(queries, keys)}: "
                "create it for these lengths"
            )
        scores = F.where(create_mask(block_mask.mask_mod, *block_mask.shape), scores, -math.inf)
    largest = scores.amax(-1, keepdim=True)
    attends = largest > -math.inf
    weights = F.exp(scores - F.where(attends, largest, 0.0))
    total = weights.sum(-1, keepdim=True)
    result = F.matmul(F.where(attends, weights / total, 0.0), value)
    if not return_lse and return_aux is None:
        return result
    lse = (F.log(total) + largest).squeeze(-1)
    if return_aux is None:
        return result, lse
    return result, AuxOutput(lse if return_aux.lse else None, largest.squeeze(-1) if return_aux.max_scores else None)
