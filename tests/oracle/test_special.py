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
