"""Calls that index: keys of data read and written, functions of indices and masks; see `tests.helpers.cases`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import common.ops.functional as F
from tests.helpers.cases import DATA_DEPENDENT, Draw, Index, T, X, case


def Wrapped(*shape: Any, limit: int) -> Draw:
    """Indices that count from both ends."""
    return lambda rng, dtype, n: rng.integers(-limit, limit, tuple(n if s == "n" else s for s in shape))


def written(*key: Any) -> Callable[..., Any]:
    """x with v at a key; an entry that is a function is made of the index operands."""

    def f(x: Any, v: Any, *indices: Any) -> Any:
        y = x * 1
        y[tuple(k(*indices) if callable(k) else k for k in key)] = v
        return y

    return f


FIRST, SECOND = (lambda *i: i[0]), (lambda *i: i[1])
ALL = slice(None)

case("getitem", lambda x, i: x[i], X(5, 3), Wrapped("n", limit=5))
case("getitem", lambda x, i: x[i], X(5), Wrapped(2, "n", limit=5))
case("getitem", lambda x, i: x[:, i], X("n", 5), Wrapped(7, limit=5))
case("getitem", lambda x, i, j: x[i, j], X(5, 4, 2), Wrapped("n", limit=5), Wrapped("n", limit=4))
case("getitem", lambda x, i, j: x[i, j], X(5, 4, 2), Wrapped("n", 1, limit=5), Wrapped(3, limit=4))
case("getitem", lambda x, i, j: x[i, :, j], X(5, "n", 4), Wrapped(3, limit=5), Wrapped(2, 3, limit=4))
case("getitem", lambda x, i, j: x[:, i, None, j], X("n", 5, 4), Wrapped(3, limit=5), Wrapped(3, limit=4))
case("getitem", lambda x, i, j, k: x[i, j, k], X(5, 4, 3), Wrapped("n", limit=5), Wrapped(1, limit=4), Index(limit=3))
case("getitem", lambda x, i: x[1:, 0, ::2, i], X(3, 2, "n", 5), Wrapped(3, limit=5))
case("getitem", lambda x, i: x[i], X(5, "n"), Wrapped(limit=5))
case("getitem", lambda x, i, j: x[:, i, j], X("n", 5, 3), Wrapped(limit=5), Index(4, limit=3))
case("getitem", lambda x: x[[2, 0, -1], [True, False, True, True]], X(3, 4))
case("getitem", lambda x: x[True, :, [0, 2]], X("n", 3))
case("getitem", lambda x: x[False], X("n", 3))
case("getitem", lambda x: x[x.shape[0] - 1], X("n", 3), empty=False)

case("setitem", written(slice(1, -1)), X("n", 3), X(3), empty=False)
case("setitem", written(ALL, slice(0, None, 2)), X("n", 5), X("n", 3))
case("setitem", written(Ellipsis, -1), X("n", 5), X("n"))
case("setitem", written(ALL), X("n", 5), X())
case("setitem", written(0, None, slice(1, 3)), X(2, "n", 4), X(1, 1, 1, 4), empty=False)
case("setitem", written(FIRST), X(5, 3), X("n", 3), Wrapped("n", limit=5))
case("setitem", written(FIRST), X("n", 3), X(3), Wrapped(0, limit=1))
case("setitem", written(ALL, FIRST), X("n", 5), X(7), Wrapped(7, limit=5))
case("setitem", written(FIRST, SECOND), X(5, 4, 2), X(), Wrapped("n", limit=5), Wrapped("n", limit=4))
case("setitem", written(FIRST, ALL, SECOND), X(5, "n", 4), X(3, "n"), Wrapped(3, limit=5), Wrapped(3, limit=4))
case("setitem", written(slice(1, None), FIRST), X(3, 5, "n"), X(2, 4, "n"), Wrapped(4, limit=5))
case("setitem", written(FIRST, 1), X(5, 4, "n"), X("n"), Wrapped(limit=5))
case("setitem", written(FIRST, SECOND), X(5, 4, "n"), X(3, "n"), Wrapped(limit=5), Wrapped(3, limit=4))
case("setitem", written(FIRST), X("n", 3), X(), T("n", 3))
case("setitem", written(FIRST), X("n", 3), X(1, 3), T("n"))
case("setitem", written(ALL, FIRST), X(2, "n", 3), X(2, 1, 1), T("n"))
case("setitem", written([1, -1]), X(4, "n"), X(2, "n"))

case("where", F.where, T("n", 3), X("n", 3), X("n", 3))
case("where", F.where, T("n", 1), X(3), X("n", 3))
case("where", lambda c, a: F.where(c, a, 2), T("n", 3), X("n", 3))
case("masked_fill", lambda x, m: F.masked_fill(x, m, -0.5), X("n", 3), T("n", 3))
case("masked_fill", F.masked_fill, X("n", 3), T("n", 1), X())
case("one_hot", lambda i: F.one_hot(i, 5), Index("n"), differentiable=False)
case("one_hot", lambda i: F.one_hot(i, 5), Index(2, "n"), differentiable=False)

case("take", F.take, X(3, 4), Wrapped("n", limit=12))
case("take_along_dim", lambda x, i: F.take_along_dim(x, i, 1), X("n", 5), Index(1, 3))
case("take_along_dim", F.take_along_dim, X(2, 3), Index("n", limit=6))
case("index_add", lambda x, i, s: F.index_add(x, 0, i, s), X(5, 3), Index("n"), X("n", 3))
case("index_add", lambda x, i, s: F.index_add(x, 1, i, s, alpha=-2.5), X("n", 5), Index(8), X("n", 8))
case("index_copy", lambda x, i, s: F.index_copy(x, 0, i, s), X(5, 3), Index("n"), X("n", 3))
case("index_copy", lambda x, i, s: F.index_copy(x, -1, i, s), X("n", 5), Index(8), X("n", 8))
case("index_fill", lambda x, i: F.index_fill(x, 0, i, 2), X(5, 3), Wrapped("n", limit=5))
case("index_fill", lambda x, i, v: F.index_fill(x, 1, i, v), X("n", 5), Wrapped(2, limit=5), X())
case("index_put", lambda x, i, v: F.index_put(x, (i,), v), X(5, 3), Wrapped("n", limit=5), X("n", 3))
case("index_put", lambda x, i, v: F.index_put(x, (i,), v, True), X(5, 3), Wrapped("n", limit=5), X(3))
case("index_put", lambda x, i, j, v: F.index_put(x, [i, None, j], v, accumulate=True), X(5, "n", 4),
     Wrapped(3, limit=5), Wrapped(2, 1, limit=4), X(2, 3, "n"))  # fmt: skip
case("put", F.put, X(3, 4), Wrapped("n", limit=12), X("n"))
case("put", lambda x, i, s: F.put(x, i, s, True), X(3, 4), Wrapped("n", 2, limit=12), X(2, "n"))
case("index_reduce", lambda x, i, s: F.index_reduce(x, 0, i, s, "prod"), X(5, 3), Index("n"), X("n", 3))
case("index_reduce", lambda x, i, s: F.index_reduce(x, 1, i, s, "mean"), X("n", 5), Index(8), X("n", 8))
case(
    "index_reduce",
    lambda x, i, s: F.index_reduce(x, 1, i, s, "amin", include_self=False),
    X("n", 5),
    Index(8),
    X("n", 8),
)
case("scatter", lambda x, i, s: F.scatter(x, 1, i, s), X("n", 5), Index("n", 8), X("n", 9))
case("scatter", lambda x, i, s: F.scatter(x, 0, i, s), X(5, "n"), Index(3, "n"), X(4, "n"))
case("scatter", lambda x, i: F.scatter(x, 0, i, value=1.5), X(5, "n", 2), Index(3, "n", 1))
case("slice_scatter", lambda x, v: F.slice_scatter(x, v, 1, 1, None, 2), X("n", 6), X("n", 3))
case("slice_scatter", F.slice_scatter, X("n", 6), X("n", 6))
case("select_scatter", lambda x, v: F.select_scatter(x, v, 1, -2), X("n", 6), X("n"))
case("masked_scatter", F.masked_scatter, X("n", 3), T("n", 3), X("n", 4))

DATA_DEPENDENT.update({
    "argwhere": (lambda f, m: f(m), (T(7, 3),)),
    "masked_select": (lambda f, x, m: f(x, m), (X(7, 3), T(7, 1))),
    "nonzero": (lambda f, m: f(m, as_tuple=True), (T(7, 3),)),
})  # fmt: skip

case("dynamic_slice", lambda x, i: F.dynamic_slice(x, (i, 1), (2, 1)), X(3, "n"), Wrapped(limit=3), empty=False)
case("dynamic_slice", lambda x, i: F.dynamic_slice(x, i, (2, x.shape[1], 2)), X(5, "n", 4), Wrapped(3, limit=9))
case("dynamic_slice", lambda x: F.dynamic_slice(x, (7, -1), x.shape), X("n", 4))
case("dynamic_slice_in_dim", lambda x, i: F.dynamic_slice_in_dim(x, i, 2, -1), X("n", 5), Wrapped(limit=9))
case("dynamic_index_in_dim", lambda x, i: F.dynamic_index_in_dim(x, i), X(3, "n"), Wrapped(limit=9))
case("dynamic_index_in_dim", lambda x, i: F.dynamic_index_in_dim(x, i, 1, False), X("n", 3), Index(limit=9))
case(
    "dynamic_update_slice",
    lambda x, v, i: F.dynamic_update_slice(x, v, (i, -9)),
    X(3, "n"),
    X(2, "n"),
    Wrapped(limit=9),
)
case(
    "dynamic_update_slice",
    lambda x, v, i: F.dynamic_update_slice(x, v, i),
    X(4, "n", 3),
    X(1, "n", 2),
    Index(3, limit=4),
)
case("dynamic_update_slice", lambda x, v: F.dynamic_update_slice(x, v, (1, 2)), X("n", 3), X("n", 3))
case("dynamic_update_slice_in_dim", lambda x, v, i: F.dynamic_update_slice_in_dim(x, v, i, 1), X("n", 5), X("n", 2),
     Wrapped(limit=9))  # fmt: skip
case("dynamic_update_index_in_dim", lambda x, v, i: F.dynamic_update_index_in_dim(x, v, i, 0), X(4, "n"), X("n"),
     Wrapped(limit=9))  # fmt: skip
