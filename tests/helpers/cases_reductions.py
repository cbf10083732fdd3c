"""Cases of reductions and scans beyond sums and extremes."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import common.ops.functional as F


def add_cases(case: Callable[..., None], X: Any, T: Any, Tied: Any, Index: Any) -> None:
    """Add the cases by means of `case`; X, T, Tied and Index draw operands."""
    for name in ("var", "std"):
        f = getattr(F, name)
        case(name, lambda x, f=f: f(x, correction=0), X("n", 3))
        case(name, lambda x, f=f: f(x, 0, keepdim=True), X("n", 3), differentiable=False)
        case(name, lambda x, f=f: f(x, -1), X("n", 5))
        case(name, lambda x, f=f: f(x, (0, 2), False), X("n", 3, 4))
        case(name, lambda x, f=f: f(x, 1, correction=1.5), X("n", 3, 4))
        case(name, lambda x, f=f: f(x, 1, correction=3), X("n", 3, 4), differentiable=False)
    for name in ("var_mean", "std_mean"):
        f = getattr(F, name)
        case(name, lambda x, f=f: f(x, 1), X("n", 5))
        case(name, lambda x, f=f: f(x, (0, 1), correction=0, keepdim=True), X("n", 3, 4))
    case("norm", F.norm, X("n"))
    for p in (0, 1, 2, 3, 0.5, -1, inf, -inf):
        least = p not in (inf, -inf)
        case("norm", lambda x, p=p: F.norm(x, p, -1), X("n", 5))
        case("norm", lambda x, p=p: F.norm(x, p, 0, True), X("n", 3), empty=least)
    case("norm", lambda x: F.norm(x, dim=(0, 2)), X("n", 3, 4))
    case("norm", lambda x: F.norm(x, inf, 1), Tied("n", 6), differentiable=False)
    case("norm", lambda x: F.norm(x, 2, 1), Tied("n", 2), differentiable=False)
    for name in ("nansum", "nanmean"):
        f = getattr(F, name)
        case(name, f, X("n", 3))
        case(name, lambda x, f=f: f(F.where(x > 0, x, float("nan")), 0), X("n", 3), differentiable=False)
        case(name, lambda x, f=f: f(F.where(x > -9, x, float("nan")), -1, True), X("n", 3))
    case("nansum", F.nansum, Index("n", 3), differentiable=False)
    case("aminmax", F.aminmax, X("n", 3), empty=False)
    case("aminmax", lambda x: F.aminmax(x, dim=1, keepdim=True), Tied("n", 3), differentiable=False)
    for name in ("any", "all", "count_nonzero"):
        f = getattr(F, name)
        for draw in (T, Tied, Index):
            case(name, f, draw("n", 3), differentiable=False)
            case(name, lambda x, f=f: f(x, 0), draw("n", 3), differentiable=False)
            case(name, lambda x, f=f: f(x, -1), draw("n", 3), differentiable=False)
            case(name, lambda x, f=f: f(x, 1), draw("n", 3, 4), differentiable=False)
            case(name, lambda x, f=f: f(x, (0, 2)), draw("n", 3, 4), differentiable=False)
        case(name, lambda x, f=f: f(F.isnan(x) | (x > 1), 0), X("n", 3), differentiable=False)

    case("prod", F.prod, X("n"))
    case("prod", lambda x: F.prod(x, 0), X("n", 3))
    case("prod", lambda x: F.prod(x, -1, True), X("n", 5))
    case("prod", lambda x: F.prod(x, 1), X("n", 3, 4))
    case("prod", lambda x: F.prod(x, (0, 2)), X("n", 3, 2))
    case("prod", lambda x: F.prod(x, 1), Tied("n", 3))
    case("prod", F.prod, Index("n", 3), differentiable=False)
    for name in ("cumsum", "cumprod", "logcumsumexp", "cummax", "cummin"):
        f = getattr(F, name)
        case(name, lambda x, f=f: f(x, 0), X("n"))
        case(name, lambda x, f=f: f(x, 0), X("n", 3))
        case(name, lambda x, f=f: f(x, -1), X("n", 5))
        case(name, lambda x, f=f: f(x, 1), X("n", 3, 4))
        smooth = name not in ("cummax", "cummin")
        case(name, lambda x, f=f: f(x, 1), Tied("n", 6), differentiable=smooth)
        if name != "logcumsumexp":
            case(name, lambda x, f=f: f(x, 0), Index("n", 3), differentiable=False)
            case(name, lambda x, f=f: f(x, 0), T("n", 3), differentiable=False)
    case("logcumsumexp", lambda x: F.logcumsumexp(F.where(x > 1, float("-inf"), x), 1), X("n", 4), differentiable=False)
