"""Special functions against mpmath, and at special points."""

import math

import mpmath
import numpy as np
import pytest

import dynamic
import static

X = np.array([0.1, 0.7, 1.9, 4.5, 11.0])
FORMULAS = {
    "i0": lambda x: mpmath.besseli(0, x),
    "i0e": lambda x: mpmath.besseli(0, x) * mpmath.exp(-x),
    "i1": lambda x: mpmath.besseli(1, x),
    "i1e": lambda x: mpmath.besseli(1, x) * mpmath.exp(-x),
    "erfcx": lambda x: mpmath.exp(x * x) * mpmath.erfc(x),
    "ndtr": mpmath.ncdf,
    "log_ndtr": lambda x: mpmath.log(mpmath.ncdf(x)),
    "bessel_j0": lambda x: mpmath.besselj(0, x),
    "bessel_j1": lambda x: mpmath.besselj(1, x),
    "bessel_y0": lambda x: mpmath.bessely(0, x),
    "bessel_y1": lambda x: mpmath.bessely(1, x),
    "modified_bessel_k0": lambda x: mpmath.besselk(0, x),
    "modified_bessel_k1": lambda x: mpmath.besselk(1, x),
    "scaled_modified_bessel_k0": lambda x: mpmath.besselk(0, x) * mpmath.exp(x),
    "scaled_modified_bessel_k1": lambda x: mpmath.besselk(1, x) * mpmath.exp(x),
    "entr": lambda x: -x * mpmath.log(x),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_of_one_operand(name):
    expected = [float(FORMULAS[name](mpmath.mpf(x))) for x in X]
    for tw in (dynamic, static):
        np.testing.assert_allclose(np.asarray(getattr(tw.special, name)(X)), expected, rtol=3e-14, atol=1e-15)


def test_of_two_operands():
    special = dynamic.special
    a, x = X[:, None], X[None]
    for name, f in {
        "gammainc": lambda a, x: mpmath.gammainc(a, 0, x, regularized=True),
        "gammaincc": lambda a, x: mpmath.gammainc(a, x, mpmath.inf, regularized=True),
        "zeta": lambda a, x: mpmath.zeta(a + 1, x),
        "xlog1py": lambda a, x: a * mpmath.log1p(x),
    }.items():
        with mpmath.workdps(40):
            expected = [[float(f(mpmath.mpf(p), mpmath.mpf(q))) for q in X] for p in X]
        found = getattr(special, name)(a + 1 if name == "zeta" else a, x)
        np.testing.assert_allclose(np.asarray(found), expected, rtol=2e-12, atol=1e-300)
    expected = [float(sum(mpmath.loggamma(v - j / mpmath.mpf(2)) for j in range(3)) + 1.5 * mpmath.log(mpmath.pi))
                for v in X + 2]  # fmt: skip
    np.testing.assert_allclose(np.asarray(special.multigammaln(X + 2, 3)), expected, rtol=1e-14)
    np.testing.assert_allclose(np.asarray(special.ndtri(special.ndtr(X[:4]))), X[:4], rtol=1e-9)


def test_special_points():
    special = dynamic.special
    assert special.entr([0.0, -1.0]).tolist() == [0, -math.inf]
    assert special.xlog1py(dynamic.tensor([0.0, 0.0]), dynamic.tensor([-1.0, -3.0])).tolist() == [0, 0]
    assert special.ndtri([0.0, 1.0]).tolist() == [-math.inf, math.inf]
    assert special.i0(dynamic.tensor([0])).tolist() == [1]
    assert math.isfinite(special.log_ndtr(dynamic.tensor(-1e4)).item())
    x = dynamic.tensor(0.0, requires_grad=True)
    (special.i1(x) + special.bessel_j1(x)).backward()
    assert x.grad.item() == 1
