"""Calls of special functions that are no plain ops; see `tests.helpers.cases`."""

from __future__ import annotations

import common.ops.functional as F
from tests.helpers.cases import P, U, X, case

for _order in (0, 1, 2):
    case("polygamma", lambda x, n=_order: F.polygamma(n, x), P("n", 3))
case("sinc", F.sinc, X("n", 3))
case("logit", lambda x: F.logit(F.abs(x)), U("n", 3))
case("logit", lambda x: F.logit(x, 0.05), U("n", 3))
case("rad2deg", F.rad2deg, X("n", 3))
case("deg2rad", F.deg2rad, X("n", 3))
