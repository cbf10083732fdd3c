"""Calls of activations of straight pieces, normalisations, differences and quantiles; see `tests.helpers.cases`."""

from __future__ import annotations

import common.ops.functional as F
from common.nn.scaled_attention import scaled_dot_product_attention
from tests.helpers.cases import P, Tied, X, case

case("hardshrink", F.hardshrink, X("n", 3))
case("softshrink", lambda x: F.softshrink(x, 0.3), X("n", 3))
case("tanhshrink", F.tanhshrink, X("n", 3))
case("threshold", lambda x: F.threshold(x, 0.1, 20.0), X("n", 3))
case("prelu", F.prelu, X("n", 3), X(3))
case("prelu", F.prelu, X("n", 3, 2), X(1))
case("glu", lambda x: F.glu(x, 1), X("n", 4))
case("softmin", lambda x: F.softmin(x, 1), X("n", 3))
case("normalize", F.normalize, X("n", 3))
case("normalize", lambda x: F.normalize(x, 1, 0), X(3, "n"))
case("rms_norm", lambda x, w: F.rms_norm(x, (3,), w), X("n", 3), X(3))
case("group_norm", lambda x, w, b: F.group_norm(x, 2, w, b), X("n", 4, 2), X(4), X(4))
case("batch_norm", lambda x, m, v, w, b: F.batch_norm(x, m, v, w, b), X("n", 3), X(3), P(3), X(3), X(3))
case("batch_norm", lambda x: F.batch_norm(x, None, None, training=True), X(2, 3, 4))
case("scaled_dot_product_attention", scaled_dot_product_attention, X("n", 4, 2), X("n", 5, 2), X("n", 5, 3))
case("scaled_dot_product_attention", lambda q, k, v: scaled_dot_product_attention(q, k, v, is_causal=True),
     X("n", 2), X("n", 2), X("n", 3))  # fmt: skip
case("diff", lambda x: F.diff(x, 2, 1), X("n", 5))
case("diff", F.diff, X("n"), empty=False)
case("diff", lambda x, y: F.diff(x, prepend=y, append=y), X("n", 3), X("n", 1))
case("trapezoid", lambda x: F.trapezoid(x, dx=0.5), X("n", 4))
case("trapezoid", lambda y, x: F.trapezoid(y, x, dim=0), X(4, "n"), X(4))
case("cumulative_trapezoid", F.cumulative_trapezoid, X("n", 4))
case("median", F.median, X("n", 3), empty=False)
case("median", lambda x: F.median(x, 1)[0], X("n", 4))
case("median", lambda x: F.median(x, 0, True), Tied("n", 3), differentiable=False, empty=False)
case("quantile", lambda x: F.quantile(x, 0.3, 1), X("n", 5), empty=False)
case("quantile", lambda x, q: F.quantile(x, q, 0), X("n", 3), lambda rng, dtype, n: rng.random(2).astype(dtype),
     differentiable=False, empty=False)  # fmt: skip
case("isin", F.isin, Tied("n", 3), Tied(2), differentiable=False)
case("float_power", F.float_power, P("n", 3), X("n", 3))
case("vdot", F.vdot, X("n"), X("n"))
