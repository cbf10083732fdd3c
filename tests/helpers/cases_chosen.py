"""Calls of medians and modes, counts, distances, numbers taken apart, and what is combined at indices."""

from __future__ import annotations

import numpy as np

import common.ops.functional as F
from tests.helpers.cases import DATA_DEPENDENT, Draw, Index, P, Tied, X, _sizes, case


def Holes(*shape: int | str) -> Draw:
    """Floats, a few of them nan."""

    def draw(rng: np.random.Generator, dtype: str, n: int) -> np.ndarray:
        x = rng.normal(size=_sizes(shape, n))
        return np.asarray(np.where(rng.random(x.shape) < 0.3, np.nan, x), dtype)

    return draw


case("clip", lambda x: F.clip(x, -0.5, 0.7), X("n", 3))
case("clamp_min", lambda x: F.clamp_min(x, -0.5), X("n", 3))
case("clamp_min", F.clamp_min, X("n", 3), X(3))
case("clamp_max", lambda x: F.clamp_max(x, 0.7), X("n", 3))
case("clamp_max", F.clamp_max, X("n", 3), X(3))
case("mode", lambda x: F.mode(x, 1), Tied("n", 6), differentiable=False)
case("mode", lambda x: F.mode(x, 0, True), Tied("n", 3), differentiable=False, empty=False)
case("nanmedian", F.nanmedian, Holes("n", 3), differentiable=False, empty=False)
case("nanmedian", lambda x: F.nanmedian(x, 1)[0], X("n", 4))
case("nanmedian", lambda x: F.nanmedian(x, 0, True), Holes("n", 3), differentiable=False, empty=False)
case("nanquantile", lambda x: F.nanquantile(x, 0.3, 1), X("n", 5), empty=False)
case("nanquantile", lambda x, q: F.nanquantile(x, q, 0), Holes("n", 3),
     lambda rng, dtype, n: rng.random(2).astype(dtype), differentiable=False, empty=False)  # fmt: skip
case("frexp", lambda x: F.frexp(x)[0], X("n", 3))
case("frexp", F.frexp, X("n"), differentiable=False)
case("ldexp", F.ldexp, X("n", 3), Index(3))
case("ldexp", F.ldexp, X("n", 3), X("n", 1))
case("histc", lambda x: F.histc(x, 5), X("n", 3), differentiable=False)
case("histc", lambda x: F.histc(x, 4, -1, 2), X("n", 3), differentiable=False)
case("cdist", F.cdist, X("n", 3), X(4, 3))
case("cdist", lambda a, b: F.cdist(a, b, 2.0, compute_mode="donot_use_mm_for_euclid_dist"), X("n", 3), X(4, 3))
case("cdist", lambda a, b: F.cdist(a, b, 1), X(2, "n", 3), X(1, 4, 3))
case("dist", F.dist, X("n", 3), X(3))
case("dist", lambda a, b: F.dist(a, b, 1), X("n", 3), X("n", 1))
case("pairwise_distance", F.pairwise_distance, X("n", 3), X("n", 3))
case("pairwise_distance", lambda a, b: F.pairwise_distance(a, b, 3, 0, True), X("n", 3), X(3))
case("softsign", F.softsign, X("n", 3))
for _reduce in ("sum", "prod", "mean", "amax", "amin"):
    case("scatter_reduce", lambda x, i, s, r=_reduce: F.scatter_reduce(x, 1, i, s, r), X("n", 5), Index("n", 8),
         X("n", 9))  # fmt: skip
    case("scatter_reduce", lambda x, i, s, r=_reduce: F.scatter_reduce(x, 0, i, s, r, include_self=False), X(5, "n"),
         Index(7, "n"), X(7, "n"))  # fmt: skip

case("poisson_nll_loss", F.poisson_nll_loss, X("n", 3), P("n", 3))
case("poisson_nll_loss", lambda x, t: F.poisson_nll_loss(x, t, False, True, reduction="none"), P("n", 3), P("n", 3))
case("gaussian_nll_loss", F.gaussian_nll_loss, X("n", 3), X("n", 3), P("n", 3))
case("gaussian_nll_loss", lambda x, t, v: F.gaussian_nll_loss(x, t, v, True, reduction="sum"), X("n", 3), X(3), P("n"))
case("triplet_margin_loss", F.triplet_margin_loss, X("n", 3), X("n", 3), X("n", 3))
case("triplet_margin_loss", lambda a, p, n: F.triplet_margin_loss(a, p, n, 2.0, 1, swap=True, reduction="none"),
     X("n", 3), X("n", 3), X("n", 3))  # fmt: skip
case("cosine_embedding_loss", lambda a, b, y: F.cosine_embedding_loss(a, b, y, 0.1), X("n", 3), X("n", 3),
     lambda rng, dtype, n: rng.choice([-1, 1], n))  # fmt: skip
case("multilabel_soft_margin_loss", F.multilabel_soft_margin_loss, X("n", 3), Index("n", 3, limit=2))
case("multilabel_soft_margin_loss", lambda x, t, w: F.multilabel_soft_margin_loss(x, t, w, reduction="none"),
     X("n", 3), Index("n", 3, limit=2), P(3))  # fmt: skip

DATA_DEPENDENT["bincount"] = (lambda f, x: f(x, minlength=3), (Index(7),))
