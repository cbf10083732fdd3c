"""Chebyshev's, Hermite's, Laguerre's and Legendre's polynomials; and Airy's and the spherical Bessel function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from common.core.op import Op
from common.kernels.math import bessel
from common.ops._define import elementwise
from common.ops._samples import away_from_zero, inside_unit
from common.ops.math.arithmetic import mul
from common.ops.math.compare import eq, where
from common.ops.special.by_scipy import of_one, pair, scipys


def _degrees(rng: Any, shape: Any, dtype: Any) -> np.ndarray:
    return np.asarray(rng.integers(-1, 9, shape)).astype(dtype)


def _polynomial(name: str, words: str) -> Op:
    return scipys(
        name, ("x", "n"), (None, None), inside_unit, _degrees,
        by=("common.kernels.math.recurrences", "orthogonal_polynomial"),
        doc=f"{words} at x, by its recurrence; 0 for n < 0. No derivatives.",
    )  # fmt: skip


_KINDS = {"t": "first", "u": "second", "v": "third", "w": "fourth"}
_POLYNOMIALS: tuple[Op, ...] = (
    *(_polynomial(f"chebyshev_polynomial_{k}", f"Chebyshev's polynomial of the {word} kind and degree n")
      for k, word in _KINDS.items()),
    *(_polynomial(f"shifted_chebyshev_polynomial_{k}", f"Chebyshev's polynomial of the {word} kind and degree n, "
                  "of 2 x - 1 instead of x,") for k, word in _KINDS.items()),
    _polynomial("hermite_polynomial_h", "The physicists' Hermite polynomial of degree n"),
    _polynomial("hermite_polynomial_he", "The probabilists' Hermite polynomial of degree n"),
    _polynomial("laguerre_polynomial_l", "Laguerre's polynomial of degree n"),
    _polynomial("legendre_polynomial_p", "Legendre's polynomial of degree n"),
)  # fmt: skip

airy_ai_: Op = scipys(
    "airy_ai", ("x",), (lambda g, x: g * airy_slope_(x),), away_from_zero,
    doc="Airy's function Ai. d/dx = airy_slope(x).",
)  # fmt: skip
airy_slope_: Op = scipys(
    "airy_slope", ("x",), (lambda g, x: g * x * airy_ai_(x),), away_from_zero,
    doc="The derivative of Airy's function Ai. d/dx = x airy_ai(x).",
)  # fmt: skip
spherical_j0_: Op = elementwise(
    "spherical_bessel_j0", bessel.spherical_j0, (lambda g, x: -g * spherical_j1_(x),),
    doc="The spherical Bessel function of the first kind and order 0: sin(x) / x. d/dx = -spherical_bessel_j1(x).",
    domain="float", costly=True, draw=away_from_zero,
)  # fmt: skip


def _j1_rule(g: Any, y: Any, x: Any) -> Any:
    zero = eq(x, 0)
    return g * where(zero, 1 / 3, spherical_j0_(x) - mul(y, 2) / where(zero, 1, x))


spherical_j1_: Op = scipys(
    "spherical_bessel_j1", ("x",), (_j1_rule,), away_from_zero,
    doc="The spherical Bessel function of the first kind and order 1: sin(x) / x^2 - cos(x) / x. "
        "d/dx = spherical_bessel_j0(x) - 2 y / x.",
)  # fmt: skip


def _of_degree(op: Op) -> Callable[[Any, Any], Any]:
    def function(x: Any, n: Any) -> Any:
        return pair(op, x, n)

    function.__name__ = op.name
    function.__doc__ = f"""{op.doc}

    Parameters
    ----------
    x : (...); ints become float32.
    n : (...), the degrees, or one; they broadcast with `x` and lose their fraction. Above 65536 the result is NaN.
    """
    return function


POLYNOMIALS: dict[str, Callable[[Any, Any], Any]] = {op.name: _of_degree(op) for op in _POLYNOMIALS}
OF_ONE: dict[str, Callable[[Any], Any]] = {op.name: of_one(op) for op in (airy_ai_, spherical_j0_)}

__all__: list[str] = []
