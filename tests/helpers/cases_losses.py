"""Calls of the losses; see `tests.helpers.cases`."""

from __future__ import annotations

import numpy as np

import common.ops.functional as F
from tests.helpers.cases import Draw, Index, P, X, _sizes, case


def Unit(*shape: int | str) -> Draw:
    """Numbers between 0.1 and 0.9."""
    return lambda rng, dtype, n: np.asarray(rng.uniform(0.1, 0.9, _sizes(shape, n)), dtype)


def Sign(*shape: int | str) -> Draw:
    """1 and -1."""
    return lambda rng, dtype, n: np.asarray(rng.choice([-1, 1], _sizes(shape, n)), np.int64)


def Class(*shape: int | str) -> Draw:
    """Classes below 5, a few of them -100, but not all: the mean of no losses is nan."""

    def draw(rng: np.random.Generator, dtype: str, n: int) -> np.ndarray:
        classes = rng.choice([0, 1, 2, 3, 4, -100], _sizes(shape, n))
        classes.reshape(-1)[:1] = 2
        return classes

    return draw


case("nll_loss", F.nll_loss, X("n", 5), Class("n"))
case("nll_loss", lambda x, t: F.nll_loss(x, t, ignore_index=2, reduction="none"), X("n", 5), Index("n"))
case("nll_loss", lambda x, t, w: F.nll_loss(x, t, w), X("n", 5), Index("n"), P(5))
case("nll_loss", lambda x, t, w: F.nll_loss(x, t, w, reduction="sum"), X("n", 5, 3), Class("n", 3), P(5))
case("cross_entropy", lambda x, t, w: F.cross_entropy(x, t, w), X("n", 5), Class("n"), P(5))
case("cross_entropy", F.cross_entropy, X("n", 5, 2, 3), Class("n", 2, 3))
case("cross_entropy", lambda x, t: F.cross_entropy(x, t, label_smoothing=0.2), X("n", 5), Class("n"))
case("cross_entropy", lambda x, t, w: F.cross_entropy(x, t, w, label_smoothing=0.2, reduction="none"), X("n", 5),
     Class("n"), P(5))  # fmt: skip
case("cross_entropy", F.cross_entropy, X("n", 5), Unit("n", 5))
case("cross_entropy", lambda x, t, w: F.cross_entropy(x, t, w, label_smoothing=0.1, reduction="sum"), X("n", 5, 2),
     Unit("n", 5, 2), P(5))  # fmt: skip
for _how in ("mean", "sum", "none"):
    case("l1_loss", lambda x, y, how=_how: F.l1_loss(x, y, how), X("n", 3), X("n", 3))
    case("smooth_l1_loss", lambda x, y, how=_how: F.smooth_l1_loss(x, y, how, 0.5), X("n", 3), X("n", 3))
    case("huber_loss", lambda x, y, how=_how: F.huber_loss(x, y, how, 0.7), X("n", 3), X("n", 3))
    case("kl_div", lambda x, t, how=_how: F.kl_div(x, t, how), X("n", 3), Unit("n", 3))
case("smooth_l1_loss", lambda x, y: F.smooth_l1_loss(x, y, beta=0), X("n", 3), X("n", 3))
case("kl_div", lambda x, t: F.kl_div(x, t, reduction="batchmean", log_target=True), X("n", 3), X("n", 3))
case("binary_cross_entropy", F.binary_cross_entropy, Unit("n", 3), Unit("n", 3))
case("binary_cross_entropy", lambda x, t, w: F.binary_cross_entropy(x, t, w, reduction="sum"), Unit("n", 3),
     Unit("n", 3), P(3))  # fmt: skip
case("binary_cross_entropy_with_logits", F.binary_cross_entropy_with_logits, X("n", 3), Unit("n", 3))
case("binary_cross_entropy_with_logits",
     lambda x, t, w, p: F.binary_cross_entropy_with_logits(x, t, w, pos_weight=p, reduction="none"), X("n", 3),
     Unit("n", 3), P("n", 1), P(3))  # fmt: skip
case("hinge_embedding_loss", F.hinge_embedding_loss, Unit("n", 3), Sign("n", 3))
case(
    "hinge_embedding_loss", lambda x, y: F.hinge_embedding_loss(x, y, 2.0, reduction="none"), Unit("n", 3), Sign("n", 3)
)
case("margin_ranking_loss", lambda a, b, y: F.margin_ranking_loss(a, b, y, 0.05), X("n"), X("n"), Sign("n"))
case("soft_margin_loss", F.soft_margin_loss, X("n", 3), Sign("n", 3))
case("cosine_similarity", F.cosine_similarity, X("n", 3), X("n", 3))
case("cosine_similarity", lambda a, b: F.cosine_similarity(a, b, dim=-1), X("n", 3), X(3))
case("cosine_similarity", lambda a, b: F.cosine_similarity(a, b, 0, 10.0), X(4, "n"), X(4, "n"))
