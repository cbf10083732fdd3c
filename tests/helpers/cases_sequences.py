"""Calls of attention and of functions of sequences; see `tests.helpers.cases`."""

from __future__ import annotations

from typing import Any

import numpy as np

import common.ops.functional as F
from common.nn.ctc import ctc_loss as F_ctc
from common.nn.multi_head import multi_head_attention_forward
from common.nn.scaled_attention import scaled_dot_product_attention
from tests.helpers.cases import Draw, Index, P, X, _sizes, case


def Seen(*shape: int | str) -> Draw:
    """Truth values; the last row is false, as of a query that may look at no key."""

    def draw(rng: np.random.Generator, dtype: str, n: int) -> np.ndarray:
        mask = rng.random(_sizes(shape, n)) < 0.6
        mask[..., -1:, :] = False
        return mask

    return draw


def Added(*shape: int | str) -> Draw:
    """Numbers to add, some of them -inf, a last row of nothing else."""

    def draw(rng: np.random.Generator, dtype: str, n: int) -> np.ndarray:
        mask = np.where(rng.random(_sizes(shape, n)) < 0.3, -np.inf, rng.normal(size=_sizes(shape, n)))
        mask[..., -1:, :] = -np.inf
        return mask.astype(dtype)

    return draw


case("scaled_dot_product_attention", lambda q, k, v, m: scaled_dot_product_attention(q, k, v, m), X(2, "n", 2),
     X(2, 4, 2), X(2, 4, 3), Seen("n", 4))  # fmt: skip
case("scaled_dot_product_attention", lambda q, k, v, m: scaled_dot_product_attention(q, k, v, m, scale=0.3),
     X("n", 2), X(4, 2), X(4, 3), Added("n", 4), differentiable=False)  # fmt: skip
case("scaled_dot_product_attention", lambda q, k, v: scaled_dot_product_attention(q, k, v, enable_gqa=True),
     X(4, "n", 2), X(2, 3, 2), X(1, 3, 3))  # fmt: skip


def _heads(q: object, k: object, v: object, w: object, b: object, o: object, **options: Any) -> Any:
    return multi_head_attention_forward(q, k, v, 4, 2, w, b, None, None, False, 0.0, o, None, **options)


case("multi_head_attention_forward", lambda *xs: _heads(*xs)[0], X("n", 2, 4), X(3, 2, 4), X(3, 2, 4), X(12, 4), X(12),
     X(4, 4))  # fmt: skip
case("multi_head_attention_forward", lambda *xs: _heads(*xs[:-1], key_padding_mask=xs[-1])[1],
     X("n", 2, 4), X(3, 2, 4), X(3, 2, 4), X(12, 4), X(12), X(4, 4),
     lambda rng, dtype, n: np.array([[False, True, False], [False, False, True]]))  # fmt: skip


def _lengths(*given: int) -> Draw:
    return lambda rng, dtype, n: np.asarray(given)


case("ctc_loss", lambda x, t, n, m: F_ctc(F.log_softmax(x, 2), t, n, m, reduction="none"), X(6, "n", 4),
     lambda rng, dtype, n: rng.integers(1, 4, (n, 3)), lambda rng, dtype, n: np.full(n, 5),
     lambda rng, dtype, n: np.minimum(np.arange(n) % 3 + 1, 2))  # fmt: skip
case("ctc_loss", lambda x, n: F_ctc(F.log_softmax(x, 2), [3, 1, 2], n, [2, 0, 1], blank=0), X(5, 3, 4),
     _lengths(4, 5, 5))  # fmt: skip
for _how in ("sum", "mean", "max"):
    case("embedding_bag", lambda i, w, how=_how: F.embedding_bag(i, w, mode=how), Index("n", 3), X(5, 3))
    case("embedding_bag", lambda i, w, o, how=_how: F.embedding_bag(i, w, o, mode=how, padding_idx=2), Index(7),
         X(5, 3), _lengths(0, 3, 3, 5))  # fmt: skip
case("embedding_bag", lambda i, w, o, p: F.embedding_bag(i, w, o, mode="sum", per_sample_weights=p,
                                                        include_last_offset=True),
     Index(6), X(5, 3), _lengths(0, 2, 6), X(6))  # fmt: skip
case("multi_margin_loss", lambda x, t, w: F.multi_margin_loss(x, t, 2, 0.7, w), X("n", 5), Index("n"), P(5))
case("multi_margin_loss", lambda x, t: F.multi_margin_loss(x, t, reduction="none"), X("n", 5), Index("n"))
case("multilabel_margin_loss", lambda x, t: F.multilabel_margin_loss(x, t, reduction="none"), X("n", 4),
     lambda rng, dtype, n: np.array([[1, 3, -1, 2], [-1, 0, 0, 0], [0, 1, 2, 3]])[np.arange(n) % 3])  # fmt: skip
case("triplet_margin_with_distance_loss",
     lambda a, p, q: F.triplet_margin_with_distance_loss(a, p, q, distance_function=F.cdist, swap=True, margin=2.0),
     X("n", 3), X("n", 3), X("n", 3))  # fmt: skip
