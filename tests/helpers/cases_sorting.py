"""Calls of the functions that put elements in order."""

import common.ops.functional as F
from tests.helpers.cases import Index, Tied, X, case

for _name in ("sort", "argsort"):
    _f, _smooth = getattr(F, _name), _name == "sort"
    case(_name, _f, X("n", 5), differentiable=_smooth)
    case(_name, lambda x, f=_f: f(x, 0, True), X("n", 3), differentiable=_smooth)
    case(_name, lambda x, f=_f: f(x, 1), X(2, "n", 3), differentiable=_smooth)
    case(_name, lambda x, f=_f: f(x, descending=True), Tied("n", 70), differentiable=False)
    case(_name, _f, Index("n", 9), differentiable=False)
case("msort", F.msort, X("n", 3))
case("topk", lambda x: F.topk(x, 3), X("n", 5))
case("topk", lambda x: F.topk(x, 2, 1, largest=False), X("n", 4, 3))
case("topk", lambda x: F.topk(x, 1, 0), X("n"), empty=False)
case("topk", lambda x: F.topk(x, 60), Tied("n", 70), differentiable=False)
case("kthvalue", lambda x: F.kthvalue(x, 3), X("n", 5))
case("kthvalue", lambda x: F.kthvalue(x, 2, 1, True), X("n", 4, 3))
for _name, _f in {
    "searchsorted": F.searchsorted,
    "bucketize": lambda x, v, **options: F.bucketize(v, x, **options),
}.items():
    case(_name, lambda x, v, f=_f: f(F.msort(x), v), X("n"), X("n", 3), differentiable=False)
    case(_name, lambda x, v, f=_f: f(F.msort(x), v, right=True), Tied(7), Tied("n", 3), differentiable=False)
    case(_name, lambda x, v, f=_f: f(F.msort(x), v, out_int32=True), Index(7), Index("n"), differentiable=False)
case("searchsorted", lambda x, v: F.searchsorted(F.sort(x)[0], v), X("n", 5), X("n", 2), differentiable=False)
case("searchsorted", lambda x, v: F.searchsorted(x, v, side="right", sorter=F.argsort(x)), X("n", 5), X("n", 2),
     differentiable=False)  # fmt: skip
