"""The incomplete gamma functions of float32: SciPy's values, mpmath's where SciPy has few digits, Temme's series."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import special

import dynamic
import static
from common.kernels.math import incomplete_gamma
from tests.bits import assert_all_same_bits

RNG = np.random.default_rng(5)
NEAR = 10 ** RNG.uniform(-1, 4, 20000)
A, X = (
    np.concatenate(parts).astype(np.float32)
    for parts in (
        (RNG.uniform(0.01, 4, 20000), RNG.uniform(0.01, 45, 20000), 10 ** RNG.uniform(-44, 4, 20000), NEAR,
         10 ** RNG.uniform(-20, 2, 20000)),
        (RNG.uniform(0.01, 4, 20000), RNG.uniform(0.01, 45, 20000), 10 ** RNG.uniform(-44, 4, 20000),
         np.abs(NEAR + np.sqrt(NEAR) * RNG.normal(0, 5, 20000)), 10 ** RNG.uniform(-1, 2.2, 20000)),
    )
)  # fmt: skip
ENDS = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-45, 3e38, 4.0, 20.0, 40.0], np.float32)
NAMES = ["gammainc", "gammaincc"]


def _function(tw: Any, name: str) -> Callable[..., Any]:
    return lambda a, x: getattr(tw.special, name)(a, x)


@pytest.mark.parametrize("name", NAMES)
def test_a_result_is_rounded_once_from_float64(name):
    exact = getattr(special, name)(A.astype(np.float64), X.astype(np.float64))
    found = _function(dynamic, name)(A, X).numpy()
    assert_all_same_bits([static.function(_function(static, name))(A, X)], [found], name)
    ulps = np.abs(found.astype(np.float64) - exact) / np.spacing(np.abs(exact).astype(np.float32))
    assert ulps.max() <= 0.6, (A[ulps.argmax()], X[ulps.argmax()])


@pytest.mark.parametrize("name", NAMES)
def test_limits_are_scipys(name):
    a, x = (np.ascontiguousarray(z) for z in np.meshgrid(ENDS, ENDS))
    exact = getattr(special, name)(a.astype(np.float64), x.astype(np.float64)).astype(np.float32)
    found = _function(dynamic, name)(a, x).numpy()
    assert np.array_equal(np.isnan(found), np.isnan(exact))
    whole = np.isin(exact, (0, 1))
    assert np.array_equal(found[whole], exact[whole])


def test_large_parameters_have_all_digits():
    """SciPy's value of the first one is wrong by 4 %."""
    for a, x in ((9686967.0, 9672493.0), (72994856.0, 72925824.0), (1e6, 1e6), (2**20, 2**20 - 3000), (3e5, 302000.0)):
        with mpmath.workdps(40):
            term = total = mpmath.mpf(1)
            k = 1
            while term > total * mpmath.mpf(10) ** -30:
                term *= mpmath.mpf(x) / (mpmath.mpf(a) + k)
                total, k = total + term, k + 1
            lower = mpmath.exp(a * mpmath.log(x) - x - mpmath.loggamma(mpmath.mpf(a) + 1)) * total
            for name, exact in (("gammainc", lower), ("gammaincc", 1 - lower)):
                found = float(_function(dynamic, name)(np.float32([a]), np.float32([x]))[0])
                assert abs(found - exact) <= 0.6 * float(np.spacing(np.float32(exact)))


@pytest.mark.parametrize("name", NAMES)
def test_a_result_does_not_depend_on_its_block(name):
    a, x = (RNG.uniform(0.1, 4, 1500).astype(np.float32) for _ in range(2))
    mixed = x.copy()
    mixed[::100] = 50.0
    inside, f = mixed == x, _function(dynamic, name)
    assert_all_same_bits([f(a, mixed).numpy()[inside]], [f(a, x).numpy()[inside]], name)
    alone = [f(a[i : i + 1], x[i : i + 1]).numpy()[0] for i in range(40)]
    assert_all_same_bits([np.array(alone)], [f(a, x).numpy()[:40]], name)


def test_the_expansion_is_temmes():
    """C0 = 1/m - 1/eta, C(k) = C(k-1)'/eta + g(k)/m for eta^2/2 = m - log(1 + m), in exact numbers.

    The numbers g(k) are those with which no C(k) has a pole.
    """
    n = 40
    m = [Fraction(0), Fraction(1)]
    for i in range(2, n):  # m m' = eta (1 + m)
        m.append((m[i - 1] - sum(m[j] * (i + 1 - j) * m[i + 1 - j] for j in range(2, i))) / (i + 1))
    inverse = [Fraction(1)]  # of m, times eta
    for i in range(1, n - 1):
        inverse.append(-sum(m[j + 1] * inverse[i - j] for j in range(1, i + 1)))
    series = inverse[1:]
    for k, table in enumerate(incomplete_gamma._UNIFORM):
        if k:
            pole = -series[1]
            series = [(i + 2) * series[i + 2] + pole * inverse[i + 1] for i in range(len(series) - 2)]
        assert table == tuple(map(float, series[: len(table)]))
