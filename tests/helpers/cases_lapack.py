"""Calls of the functions that LAPACK computes, as data."""

# mypy: disable-error-code="arg-type"
# a row is a name, a function and its draws

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import common.ops.functional as F
from common.ops.linalg._lapack import identity_like
from common.ops.linalg.linalg_namespace import FUNCTIONS as L
from tests.helpers.cases import PROGRAMS, Case, X, case


def square(*lead: Any) -> Callable[..., np.ndarray]:
    """Well-conditioned matrices of a size that varies, with different singular values."""

    def draw(rng: np.random.Generator, dtype: str, n: int) -> np.ndarray:
        x = 0.4 * rng.normal(size=(*lead, n, n)) / max(n, 1) ** 0.5
        return np.asarray(x + np.diag(np.linspace(1, 3, n) if n else np.zeros(0)), dtype)

    return draw


def tall(*lead: Any, more: int = 2) -> Callable[..., np.ndarray]:
    """As `square`, with rows below."""

    def draw(rng: np.random.Generator, dtype: str, n: int) -> np.ndarray:
        top = square(*lead)(rng, dtype, n)
        return np.concatenate([top, np.asarray(0.3 * rng.normal(size=(*lead, more, n)), dtype)], -2)

    return draw


def symmetric(x: Any) -> Any:
    """The symmetric part; derivatives of functions that read one triangle are those among symmetric matrices."""
    return (x + F.transpose(x, -2, -1)) * 0.5


def positive(x: Any) -> Any:
    """A positive-definite matrix."""
    return symmetric(F.matmul(x, F.transpose(x, -2, -1)))


def signless(q: Any) -> Any:
    """The part of orthonormal columns that does not depend on their signs."""
    return q * q


_one, _many = square(), square(2)
case("cholesky", lambda x: F.cholesky(positive(x)), _many)
case("cholesky", lambda x: F.cholesky(positive(x), upper=True), _one)
case("cholesky_solve", lambda x, b: F.cholesky_solve(b, F.tril(x)), _many, X(2, "n", 3))
case("cholesky_inverse", lambda x: F.cholesky_inverse(F.triu(x), upper=True), _one)
case("det", F.det, _many)
case("slogdet", lambda x: F.slogdet(x).logabsdet, _many)
case("logdet", F.logdet, _one)
case("inverse", F.inverse, _many)
case("lu_solve", lambda x, b: F.lu_solve(b, *L["lu_factor"](x)), _many, X("n", 3))
case("lu_unpack", lambda x: F.lu_unpack(*L["lu_factor"](x))[1:], tall(2), empty=False)
case("triangular_solve", lambda x, b: F.triangular_solve(b, x, upper=False)[0], _one, X("n", 2))
case("matrix_exp", F.matrix_exp, _many)
case("geqrf", lambda x: F.geqrf(x)[0] + 0 * F.sum(x), tall(), differentiable=False)
case("orgqr", lambda x: F.orgqr(x, F.sum(x, -2) * 0.1), tall(), empty=False)
case("ormqr", lambda x, b: F.ormqr(x, F.sum(x, -2) * 0.1, b), _one, X("n", 2), empty=False)
case("lobpcg", lambda x: signless(F.lobpcg(x, 1)[1]), _many, empty=False)
case("lobpcg", lambda x, b: F.lobpcg(x, 1, positive(b), largest=False)[0], _one, _one, empty=False)
case("pinverse", F.pinverse, tall(2), empty=False)
case("qr", lambda x: F.qr(x), tall(2), empty=False)
case("svd", lambda x: F.svd(x).S, tall(), empty=False)
case("svd", lambda x: (signless(F.svd(x).U), signless(F.svd(x).V)), _many, empty=False)
for _name, _f, *_draws in [
    ("eigh", lambda x: signless(L["eigh"](symmetric(x)).eigenvectors), _many),
    ("eigvalsh", lambda x: L["eigvalsh"](symmetric(x), UPLO="U"), _one),
    ("solve", lambda x, b: L["solve"](x, b), _many, X("n", 3)),
    ("solve", lambda x, b: L["solve"](x, b, left=False), _one, X(3, "n")),
    ("solve_triangular", lambda x, b: L["solve_triangular"](x, b, upper=True, unitriangular=True), _one, X("n", 2)),
    ("lu", lambda x: L["lu"](F.transpose(x, -2, -1))[1:], tall()),
    ("qr", lambda x: L["qr"](F.transpose(x, -2, -1)), tall(2)),
    ("lstsq", lambda x, b: L["lstsq"](x, b)[0], _one, X("n", 2)),
    ("householder_product", lambda x: L["householder_product"](x, F.narrow(F.sum(x, -2), -1, 0, 0)) + 0, tall()),
    ("svd", lambda x: signless(L["svd"](x, full_matrices=False).U), tall(2)),
    ("cond", lambda x: L["cond"](x), _one),
    ("matrix_norm", lambda x: L["matrix_norm"](x, "nuc"), tall()),
    (
        "ldl_solve",
        lambda x, b: L["ldl_solve"](*L["ldl_factor"](F.ones_like(x) + identity_like(x)), b) + F.sum(x),
        _one,
        X("n", 2),
    ),
    ("vander", lambda x: L["vander"](x, N=4), X(2, "n")),
]:
    PROGRAMS.append(Case(f"linalg.{_name}", _f, tuple(_draws), empty=False))
case("matrix_power", lambda x: F.matrix_power(x, -2), _many)
