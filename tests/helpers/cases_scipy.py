"""Calls of special functions that SciPy computes, as data."""

from __future__ import annotations

import common.ops.functional as F
from common.ops.special.orthogonal_polynomials import POLYNOMIALS
from common.ops.special.special_namespace import FUNCTIONS as S
from tests.helpers.cases import PROGRAMS, Case, Index, P, U, X, case

case("i0", F.i0, X("n", 3))
case("igamma", lambda x: F.igamma(F.ones_like(x) * 1.5, x), P("n", 3))
case("igammac", lambda x: F.igammac(F.ones_like(x) * 1.5, x), P("n", 3))
case("mvlgamma", lambda x: F.mvlgamma(x + 1.5, 3), P("n", 2))
for _name, _draw in [
    ("entr", P),
    ("ndtr", X),
    ("log_ndtr", X),
    ("bessel_j1", X),
    ("modified_bessel_k0", P),
    ("airy_ai", X),
    ("spherical_bessel_j0", X),
]:
    PROGRAMS.append(Case(f"special.{_name}", S[_name], (_draw("n", 2),)))
PROGRAMS.append(Case("special.xlog1py", S["xlog1py"], (X("n", 2), U(2))))
for _name, _f in POLYNOMIALS.items():
    PROGRAMS.append(Case(f"special.{_name}", _f, (X("n", 2), Index(2, limit=9)), differentiable=False))
