"""The Chebyshev coefficients of modified Bessel functions, from their definition."""

from __future__ import annotations

import mpmath
import pytest

from common.kernels.math import bessel

NODES = 64


def near(order):
    """e^-x I(x) / x^order of x = 4 (t + 1)."""

    def function(t):
        x = 4 * (t + 1)
        return mpmath.exp(-x) * mpmath.besseli(order, x) / x**order

    return function


def far(order):
    """sqrt(x) e^-x I(x) of x = 16 / (t + 1)."""

    def function(t):
        x = 16 / (t + 1)
        return mpmath.sqrt(x) * mpmath.exp(-x) * mpmath.besseli(order, x)

    return function


@pytest.mark.parametrize(
    ("table", "function"),
    [
        (bessel._I0E_NEAR, near(0)),
        (bessel._I0E_FAR, far(0)),
        (bessel._I1E_NEAR, near(1)),
        (bessel._I1E_FAR, far(1)),
    ],
)
def test_coefficients_are_those_of_the_series(table, function):
    """They follow from the values at the zeros of a polynomial of a degree at which nothing is left."""
    with mpmath.workdps(40):
        turns = [mpmath.pi * (k + mpmath.mpf(1) / 2) / NODES for k in range(NODES)]
        values = [function(mpmath.cos(a)) for a in turns]
        for j, found in enumerate(reversed(table)):
            exact = 2 * mpmath.fsum(v * mpmath.cos(j * a) for v, a in zip(values, turns, strict=True)) / NODES
            assert found == float(exact), j
