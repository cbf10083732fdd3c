"""Cases of division, rounding, nearness and blends."""

from __future__ import annotations

import common.ops.functional as F
from tests.helpers.cases import Whole, X, case

case("div", F.div, X("n", 3), X(3))
for _name, _f in {
    "floor_divide": F.floor_divide, "remainder": F.remainder, "fmod": F.fmod, "divide": F.divide,
    "div": lambda a, b: F.div(a, b, rounding_mode="trunc"), "true_divide": F.true_divide,
}.items():  # fmt: skip
    case(_name, _f, X("n", 3), X(3))
    case(_name, lambda x, f=_f: f(x, 0.7), X("n"))
    case(_name, lambda x, f=_f: f(2.5, x), X("n"))
    case(_name, _f, Whole("n", 3), Whole("n", 1), differentiable=False)
    case(_name, lambda x, f=_f: (f(x, 3), f(-7, x)), Whole("n"), differentiable=False)
    case(_name, _f, Whole("n"), X("n"), differentiable=False)
case("div", lambda a, b: F.div(a, b, rounding_mode="floor"), X("n", 3), X("n", 3))
case("round", F.round, X("n", 3))
case("round", lambda x: F.round(x, decimals=2), X("n", 3), differentiable=False)
case("round", lambda x: F.round(100 * x, decimals=-1), X("n", 3))
case("nan_to_num", lambda x: F.nan_to_num(1 / F.floor(x)), X("n", 3), differentiable=False)
case("nan_to_num", lambda x: F.nan_to_num(x, 1, posinf=2, neginf=-3), X("n", 3))
case("isclose", lambda a, b: F.isclose(a, b, rtol=0.3), X("n", 3), X(3), differentiable=False)
case("isclose", lambda a, b: F.isclose(0 / F.floor(a), b, 0, 0, equal_nan=True), X("n"), X("n"), differentiable=False)
case("lerp", lambda a, b: F.lerp(a, b, 0.3), X("n", 3), X("n", 3))
case("addcmul", F.addcmul, X("n", 3), X("n", 1), X(3))
case("addcmul", lambda x, a, b: F.addcmul(x, a, b, value=-0.3), X(3), X("n", 3), X("n", 3))
case("addcmul", lambda x: F.addcmul(x, x, x, value=3), Whole("n"), differentiable=False)
case("addcdiv", F.addcdiv, X("n", 3), X("n", 1), X(3))
case("addcdiv", lambda x, a, b: F.addcdiv(x, a, b, value=-0.3), X(3), X("n", 3), X("n", 3))
