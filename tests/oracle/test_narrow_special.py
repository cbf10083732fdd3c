"""Special functions of float32 that compute in float64: SciPy's values, and mpmath's next to zeros."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy import special

import dynamic
import static
from tests.bits import assert_all_same_bits

RNG = np.random.default_rng(3)
REAL = np.concatenate([
    RNG.uniform(-8, 8, 20000), RNG.uniform(-90, 90, 20000), RNG.choice([-1, 1], 5000) * 10 ** RNG.uniform(-44, 5, 5000),
    [0.0, -0.0, 1.0, -1.0, 2.0, 8.0, -8.0, np.nextafter(np.float32(8), np.float32(9)), 1e-45, np.inf, -np.inf, np.nan],
]).astype(np.float32)  # fmt: skip
SHARES = np.concatenate([
    RNG.uniform(0, 1, 20000), 10 ** RNG.uniform(-44, 0, 20000), 1 - 10 ** RNG.uniform(-7, 0, 5000),
    [0.0, -0.0, 1.0, 0.5, 1e-45, 1.5, -0.5, np.inf, np.nan],
]).astype(np.float32)  # fmt: skip
#: Functions by their names here and in SciPy, and their arguments.
FUNCTIONS = {
    **{name: (name, REAL) for name in ("i0", "i0e", "i1", "i1e", "erfcx", "log_ndtr", "gammaln")},
    **{f"bessel_{name}": (name, REAL) for name in ("j0", "j1", "y0", "y1")},
    "ndtri": ("ndtri", SHARES),
    "erfinv": ("erfinv", (2 * SHARES - 1).astype(np.float32)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_result_is_rounded_once_from_float64(name):
    """Within 0.6 units of the last place; limits, signs of zeros and nan are SciPy's."""
    theirs, x = FUNCTIONS[name]
    with np.errstate(all="ignore"):
        exact = getattr(special, theirs)(x.astype(np.float64))
        rounded = exact.astype(np.float32)
    found = getattr(dynamic.special, name)(x).numpy()
    assert_all_same_bits([static.function(lambda x: getattr(static.special, name)(x))(x)], [found], name)
    plain = np.isfinite(rounded) & (exact != 0)
    ulps = np.abs(found[plain].astype(np.float64) - exact[plain]) / np.spacing(np.abs(exact[plain]).astype(np.float32))
    assert ulps.max() <= 0.6, x[plain][ulps.argmax()]
    same = ~plain & ~((x == -np.inf) & (name == "gammaln"))  # where PyTorch's is infinite, and SciPy's is not
    assert_all_same_bits([found[same]], [rounded[same]], name)


def test_limits_at_infinity():
    inf = np.float32(np.inf)
    assert float(dynamic.special.log_ndtr(np.array([-inf]))[0]) == -inf
    assert np.signbit(float(dynamic.special.log_ndtr(np.array([inf]))[0]))
    assert float(dynamic.special.erfcx(np.array([inf]))[0]) == 0


@pytest.mark.parametrize(
    ("name", "exact", "zeros"),
    [
        ("bessel_j0", lambda x: mpmath.besselj(0, x), lambda k: mpmath.besseljzero(0, k)),
        ("bessel_j1", lambda x: mpmath.besselj(1, x), lambda k: mpmath.besseljzero(1, k)),
        ("bessel_y0", lambda x: mpmath.bessely(0, x), lambda k: mpmath.besselyzero(0, k)),
        ("bessel_y1", lambda x: mpmath.bessely(1, x), lambda k: mpmath.besselyzero(1, k)),
    ],
)
def test_digits_are_kept_next_to_zeros(name, exact, zeros):
    with mpmath.workdps(40):
        near = [np.float32(zeros(k)) for k in (1, 2, 3, 4, 12, 100)]
        x = np.array([np.nextafter(z, np.float32(to)) for z in near for to in (z, 0, 1e9)], np.float32)
        found = getattr(dynamic.special, name)(x).numpy()
        values = [exact(mpmath.mpf(float(a))) for a in x]
        errors = [
            abs(mpmath.mpf(float(y)) - v) / mpmath.mpf(float(np.spacing(abs(np.float32(v)))))
            for y, v in zip(found, values, strict=True)
        ]
    assert max(errors) <= 0.6


def test_a_result_does_not_depend_on_its_block():
    """A block with an argument beyond 8 takes the other loop."""
    x = RNG.uniform(0.1, 8, 1500).astype(np.float32)
    mixed = x.copy()
    mixed[::100] = 50.0
    inside = mixed == x
    for name in ("bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1"):
        f = getattr(dynamic.special, name)
        assert_all_same_bits([f(mixed).numpy()[inside]], [f(x).numpy()[inside]], name)
        assert_all_same_bits([np.array([f(x[i : i + 1]).numpy()[0] for i in range(40)])], [f(x).numpy()[:40]], name)


def test_subnormal_results_of_silu_are_rounded_once():
    x = np.linspace(-104, -84, 4001).astype(np.float32)
    with mpmath.workdps(40):
        exact = [mpmath.mpf(float(a)) / (1 + mpmath.exp(-mpmath.mpf(float(a)))) for a in x]
    found = dynamic.nn.functional.silu(dynamic.tensor(x)).numpy()
    tiny = np.abs(found) < np.finfo(np.float32).tiny / 64
    errors = [abs(float(y) - float(v)) / 2.0**-149 for y, v in zip(found[tiny], np.array(exact)[tiny], strict=True)]
    assert max(errors) <= 0.53


def test_reciprocal_squares_and_powers_to_the_half_divide():
    x = np.concatenate([RNG.normal(size=5000) * 10.0 ** RNG.integers(-18, 18, 5000), [0, -0.0, np.inf, np.nan]])
    x = x.astype(np.float32)
    with np.errstate(all="ignore"):
        expected = 1 / (x * x)
    for tw in (dynamic, static):
        for exponent in (-2, -2.0, np.full(x.shape, -2, np.float32)):
            assert_all_same_bits([tw.function(lambda x, e, tw=tw: tw.pow(x, e))(x, exponent)], [expected], "x ** -2")
    roots = np.abs(x[np.isfinite(x) & (x != 0)])
    for tw in (dynamic, static):
        slope = tw.function(tw.grad(lambda x: (x**0.5).sum()))(roots)
        assert_all_same_bits([slope], [1 / (2 * np.sqrt(roots))], "slope of x ** 0.5")
