"""Special functions against mpmath, and at special points."""

import math
import re
from pathlib import Path

import mpmath
import numpy as np
import pytest

import dynamic
import static

X = np.array([0.1, 0.7, 1.9, 4.5, 11.0])


def scaled(function, sign=1):
    """A function times e^(sign |x|)."""
    return lambda x: function(x) * mpmath.exp(sign * abs(x))


def order(bessel, n):
    """A Bessel function of one order."""
    return lambda x: bessel(n, x)


#: Formulas by name; where they are compared is in docs/numerics.md, with the largest error.
FORMULAS = {
    "i0": order(mpmath.besseli, 0),
    "i0e": scaled(order(mpmath.besseli, 0), -1),
    "i1": order(mpmath.besseli, 1),
    "i1e": scaled(order(mpmath.besseli, 1), -1),
    "erfcx": lambda x: mpmath.exp(x * x) * mpmath.erfc(x),
    "ndtr": mpmath.ncdf,
    "log_ndtr": lambda x: mpmath.log1p(-mpmath.ncdf(-x)) if x > 0 else mpmath.log(mpmath.ncdf(x)),
    "ndtri": lambda p: -mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * p),
    "bessel_j0": order(mpmath.besselj, 0),
    "bessel_j1": order(mpmath.besselj, 1),
    "bessel_y0": order(mpmath.bessely, 0),
    "bessel_y1": order(mpmath.bessely, 1),
    "modified_bessel_k0": order(mpmath.besselk, 0),
    "modified_bessel_k1": order(mpmath.besselk, 1),
    "scaled_modified_bessel_k0": scaled(order(mpmath.besselk, 0)),
    "scaled_modified_bessel_k1": scaled(order(mpmath.besselk, 1)),
    "entr": lambda x: -x * mpmath.log(x),
}
PAGE = Path(__file__).parents[2] / "docs" / "numerics.md"
ROW = re.compile(r"^\| `(\w+)` \| \[(\S+), (\S+)\] \| (\S+) \| (\S+) \|$", re.MULTILINE)
ROWS = ROW.findall(PAGE.read_text(encoding="utf-8"))


def points(low, high):
    """As many of each size on both sides of 0, between the ends."""
    sizes = np.geomspace(1e-3 * min(1.0, high), max(abs(low), high), 14)
    return np.concatenate([-sizes[-sizes >= low][::-1], sizes[(sizes >= low) & (sizes <= high)]])


def ulps(found, exact):
    """The error in units of the last place of the exact value."""
    return float(abs(mpmath.mpf(float(found)) - exact) / mpmath.mpf(float(np.spacing(abs(found.dtype.type(exact))))))


def test_the_page_has_all_functions():
    assert [name for name, *_ in ROWS] == list(FORMULAS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_of_one_operand(row):
    name, low, high, *allowed = row
    for dtype, most in zip((np.float32, np.float64), allowed, strict=True):
        x = points(float(low), float(high)).astype(dtype)
        x = x[(x >= dtype(low)) & (x <= dtype(high))]
        found = np.asarray(getattr(dynamic.special, name)(x))
        with mpmath.workdps(40):
            errors = [ulps(y, FORMULAS[name](mpmath.mpf(float(a)))) for a, y in zip(x, found, strict=True)]
        assert max(errors) <= float(most), (dtype.__name__, x[np.argmax(errors)], max(errors))
    np.testing.assert_array_equal(np.asarray(getattr(static.special, name)(x)), found)


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


def chebyu(n, x):
    """Chebyshev's polynomial of the second kind, by its powers."""
    return mpmath.fsum((-1) ** k * mpmath.binomial(n - k, k) * (2 * x) ** (n - 2 * k) for k in range(n // 2 + 1))


def hermite(n, x, half):
    """Hermite's polynomials by their powers."""
    return mpmath.fsum(
        (-1) ** k
        * mpmath.binomial(n, 2 * k)
        * mpmath.factorial(2 * k)
        / mpmath.factorial(k)
        / half**k
        * x ** (n - 2 * k)
        for k in range(n // 2 + 1)
    )


#: Polynomials by their explicit formulas, as functions of the degree and of where.
POLYNOMIALS = {
    "chebyshev_polynomial_t": lambda n, x: chebyu(n, x) - x * chebyu(n - 1, x),
    "chebyshev_polynomial_u": chebyu,
    "chebyshev_polynomial_v": lambda n, x: chebyu(n, x) - (chebyu(n - 1, x)),
    "chebyshev_polynomial_w": lambda n, x: chebyu(n, x) + (chebyu(n - 1, x)),
    "hermite_polynomial_h": lambda n, x: hermite(n, 2 * x, 1),
    "hermite_polynomial_he": lambda n, x: hermite(n, x, 2),
    "laguerre_polynomial_l": lambda n, x: mpmath.fsum(
        mpmath.binomial(n, k) * (-x) ** k / mpmath.factorial(k) for k in range(n + 1)
    ),
    "legendre_polynomial_p": lambda n, x: (
        mpmath.fsum(mpmath.binomial(n, k) ** 2 * (x - 1) ** (n - k) * (x + 1) ** k for k in range(n + 1)) / 2**n
    ),
}


def test_of_degrees():
    """Each polynomial at degrees that broadcast with where; the two engines agree in bits."""
    x, n = np.array([-1.3, -1.0, -0.4, 0.0, 0.7, 1.0, 2.5]), np.array([[0], [1], [2], [5], [9]])
    shifted = {
        f"shifted_{name}": lambda n, x, f=f: f(n, 2 * x - 1) for name, f in POLYNOMIALS.items() if "cheb" in name
    }
    for name, f in (POLYNOMIALS | shifted).items():
        with mpmath.workdps(40):
            expected = [[float(mpmath.re(f(int(m), mpmath.mpf(float(a))))) for a in x] for (m,) in n]
        found = getattr(dynamic.special, name)(dynamic.tensor(x), dynamic.tensor(n))
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12, atol=1e-12, err_msg=name)
        np.testing.assert_array_equal(np.asarray(getattr(static.special, name)(x, n)), np.asarray(found))
        f = getattr(dynamic.special, name)
        assert f(dynamic.tensor([1, 2]), 3).dtype == dynamic.float32
        assert f(2.0, dynamic.tensor([-1.0, 0.0, 2.5])).tolist() == [0, 1, f(dynamic.tensor(2.0), 2).item()]
        assert math.isnan(f(dynamic.tensor(0.5), 10**9).item())
        assert not f(dynamic.tensor(0.5, requires_grad=True), 2).requires_grad


def test_spherical_and_airy():
    x = np.array([-30.0, -2.5, -1e-3, 0.0, 1e-9, 0.4, 3.0, 40.0])
    for name, f in {"airy_ai": mpmath.airyai, "spherical_bessel_j0": mpmath.sinc}.items():
        with mpmath.workdps(40):
            expected = [float(f(mpmath.mpf(float(a)))) for a in x]
        np.testing.assert_allclose(np.asarray(getattr(dynamic.special, name)(x)), expected, rtol=1e-12)
    assert dynamic.special.spherical_bessel_j0(dynamic.tensor([-math.inf, 0.0, math.inf])).tolist() == [0, 1, 0]


def test_special_points():
    special = dynamic.special
    assert special.entr([0.0, -1.0]).tolist() == [0, -math.inf]
    assert special.xlog1py(dynamic.tensor([0.0, 0.0]), dynamic.tensor([-1.0, -3.0])).tolist() == [0, 0]
    assert special.ndtri([0.0, 1.0]).tolist() == [-math.inf, math.inf]
    assert special.i0(dynamic.tensor([0])).tolist() == [1]
    assert math.isfinite(special.log_ndtr(dynamic.tensor(-1e4)).item())
    assert special.airy_ai(dynamic.tensor([300.0, 1e300, math.inf])).tolist() == [0, 0, 0]
    x = dynamic.tensor(0.0, requires_grad=True)
    (special.i1(x) + special.bessel_j1(x)).backward()
    assert x.grad.item() == 1


def test_derivatives_at_the_ends_of_domains():
    """-1 - log(x) is infinite at 0 and no number below; log1p(b) does not ask whether its factor is 0."""
    x = dynamic.tensor([math.nan, -1.0, 0.0, 1.0, math.inf], requires_grad=True)
    dynamic.special.entr(x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [math.nan, math.nan, math.inf, -1, -math.inf])
    a, b = dynamic.tensor([0.0, 0.0, 2.0], requires_grad=True), dynamic.tensor([1.0, -3.0, 1.0], requires_grad=True)
    dynamic.special.xlog1py(a, b).sum().backward()
    np.testing.assert_allclose(a.grad.numpy(), [math.log(2), 0, math.log(2)], rtol=1e-6)
    assert b.grad.tolist() == [0, 0, 1]
