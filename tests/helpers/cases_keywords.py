"""Calls with the rarer arguments of functions that have cases elsewhere; see `tests.helpers.cases`."""

from __future__ import annotations

import common.ops.functional as F
from tests.helpers.cases import Index, P, X, case

case("linear", F.linear, X("n", 4), X(4))
case("max", lambda x, y: F.max(x, b=y), X("n", 3), X("n", 3))
case("mse_loss", lambda x, y, w: F.mse_loss(x, y, weight=w), X("n", 3), X("n", 3), P("n", 3))
case("huber_loss", lambda x, y, w: F.huber_loss(x, y, weight=w), X("n", 3), X("n", 3), P("n", 3))
case("norm", lambda x: F.norm(x, 3, 1, dtype="float64"), P("n", 3))
case("scatter_add", lambda x, i, s: F.scatter_add(x, 0, i, s), X(5, 3), Index("n", 2), X("n", 3))
case("searchsorted", lambda x: F.searchsorted(F.sort(x, 0)[0], 0.5), X("n"), differentiable=False)
