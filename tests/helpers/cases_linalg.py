"""Calls of the functions of linear algebra, as data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import common.ops.functional as F

#: Equations, with the shapes of their operands; "n" is the size that varies.
EQUATIONS = [
    ("ij,jk->ik", ("n", 4), (4, 3)),
    ("ij,kj", ("n", 4), (3, 4)),
    ("ji,jk->ki", ("n", 4), ("n", 3)),
    ("bij,bjk->bik", (2, "n", 4), (2, 4, 3)),
    ("bihd,bjhd->bhij", (2, "n", 3, 4), (2, "n", 3, 4)),
    ("...ij,...jk->...ik", (2, 1, "n", 4), (3, 4, 2)),
    ("bi,bi->b", ("n", 4), ("n", 4)),
    ("i,j->ij", ("n",), (3,)),
    ("i,i", ("n",), ("n",)),
    ("ij,ij->", ("n", 3), ("n", 3)),
    ("ij,k->k", ("n", 3), (4,)),
    ("ij,jk,kl->il", (2, "n"), ("n", 3), (3, 2)),
    ("ij,jk,ki->", (2, "n"), ("n", 3), (3, 2)),
    ("bi,ij,bj->b", ("n", 3), (3, 4), ("n", 4)),
    ("ii->i", ("n", "n")),
    ("ii", ("n", "n")),
    ("bii,i->b", (2, "n", "n"), ("n",)),
    ("iii->i", ("n", "n", "n")),
    ("ij->ji", ("n", 3)),
    ("i...->...", ("n", 3)),
    ("...i->i", (2, 3, "n")),
    ("ij,j->ij", ("n", 3), (1,)),
    ("ij,jk->ik", ("n", 3), (1, 2)),
    ("ab,cb,ca->", (2, "n"), (3, "n"), (3, 2)),
    ("ijk,kj->i", ("n", 3, 4), (4, 3)),
]  # fmt: skip


def add(case: Callable[..., None], X: Callable[..., Any]) -> None:
    """Add the cases: ``case(name, f, *draws)``, ``X(*shape)`` draws floats."""
    for equation, *shapes in EQUATIONS:
        case("einsum", lambda *xs, e=equation: F.einsum(e, *xs), *(X(*shape) for shape in shapes))
    case("tensordot", F.tensordot, X("n", 3, 4), X(3, 4, 2))
    case("tensordot", lambda a, b: F.tensordot(a, b, 1), X(2, "n"), X("n", 3))
    case("tensordot", lambda a, b: F.tensordot(a, b, 0), X(2, "n"), X(3))
    case("tensordot", lambda a, b: F.tensordot(a, b, ([2, 0], [0, -1])), X("n", 2, 4), X(4, 3, "n"))
    case("inner", F.inner, X("n", 4), X(3, 4))
    case("inner", F.inner, X("n"), X("n"))
    case("inner", F.inner, X(), X("n", 2))
    case("outer", F.outer, X("n"), X(3))
    case("dot", F.dot, X("n"), X("n"))
    case("mv", F.mv, X("n", 4), X(4))
    case("mv", F.mv, X(3, "n"), X("n"))
    case("trace", F.trace, X("n", "n"))
    case("trace", F.trace, X("n", 3))
    case("kron", F.kron, X("n", 2), X(3, 2))
    case("kron", F.kron, X(2), X("n", 3))
    case("cross", F.cross, X("n", 3), X("n", 3))
    case("cross", lambda a, b: F.cross(a, b, 0), X(3, "n"), X(3, 1))
    case("bilinear", F.bilinear, X("n", 3), X("n", 4), X(2, 3, 4), X(2))
    case("bilinear", F.bilinear, X(3), X("n"), X(2, 3, "n"))
    case("matrix_power", lambda x: F.matrix_power(x, 1), X("n", "n"))
    case("matrix_power", lambda x: F.matrix_power(x * 0.25, 5), X(2, "n", "n"))
    case("matrix_power", lambda x: F.matrix_power(x, 0) * F.sum(x), X(2, "n", "n"))
    case("chain_matmul", lambda *xs: F.chain_matmul(*xs), X(2, "n"), X("n", 3), X(3, 4))
    case("multi_dot", lambda *xs: F.multi_dot(xs), X("n"), X("n", 3), X(3))
    case("matmul", F.matmul, X("n"), X(2, "n", 3))
    case("matmul", F.matmul, X(3, 2, "n"), X("n"))
    case("matmul", F.matmul, X("n", 4), X(3, 4, 2))
    case("matmul", F.matmul, X(2, 3, "n"), X("n", 4))
    case("linear", F.linear, X(2, 3, "n"), X(4, "n"), X(4))
    case("addmm", lambda c, a, b: F.addmm(c, a, b, beta=0), X(3), X("n", 4), X(4, 3))
    case("baddbmm", F.baddbmm, X("n", 1), X(2, "n", 4), X(2, 4, 3))
    case("baddbmm", lambda c, a, b: F.baddbmm(c, a, b, beta=2, alpha=0.5), X(2, "n", 3), X(2, "n", 4), X(2, 4, 3))
    case("addmv", F.addmv, X("n"), X("n", 4), X(4))
    case("addmv", lambda c, a, b: F.addmv(c, a, b, beta=0.5, alpha=3), X(), X("n", 4), X(4))
    case("addr", F.addr, X(3), X("n"), X(3))
    case("addr", lambda c, a, b: F.addr(c, a, b, beta=0.5, alpha=3), X("n", 3), X("n"), X(3))
