"""Calls of attention and of functions of sequences; see `tests.helpers.cases`."""

from __future__ import annotations

import numpy as np

import common.ops.functional as F
from tests.helpers.cases import Draw, X, _sizes, case


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


case("scaled_dot_product_attention", lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m), X(2, "n", 2),
     X(2, 4, 2), X(2, 4, 3), Seen("n", 4))  # fmt: skip
case("scaled_dot_product_attention", lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m, scale=0.3),
     X("n", 2), X(4, 2), X(4, 3), Added("n", 4), differentiable=False)  # fmt: skip
case("scaled_dot_product_attention", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
     X(4, "n", 2), X(2, 3, 2), X(1, 3, 3))  # fmt: skip


def _heads(q: object, k: object, v: object, w: object, b: object, o: object, **options: object) -> object:
    return F.multi_head_attention_forward(q, k, v, 4, 2, w, b, None, None, False, 0.0, o, None, **options)


case("multi_head_attention_forward", lambda *xs: _heads(*xs)[0], X("n", 2, 4), X(3, 2, 4), X(3, 2, 4), X(12, 4), X(12),
     X(4, 4))  # fmt: skip
case("multi_head_attention_forward", lambda *xs: _heads(*xs[:-1], key_padding_mask=xs[-1])[1],
     X("n", 2, 4), X(3, 2, 4), X(3, 2, 4), X(12, 4), X(12), X(4, 4),
     lambda rng, dtype, n: np.array([[False, True, False], [False, False, True]]))  # fmt: skip
