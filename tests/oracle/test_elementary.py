"""Elementary functions: compiled bits against the numpy backend, values against mpmath, special cases."""

import math
from pathlib import Path

import mpmath
import numpy as np
import pytest

from benchmarks.accuracy import inputs
from benchmarks.bits import difference
from benchmarks.elementary.mpmath_definitions import REFERENCES
from benchmarks.elementary.scalar_loop import compile_loop
from benchmarks.elementary.ulp_errors import (
    FUNCTIONS,
    NOT_MEASURED,
    definition,
    operands,
    reference,
    sample,
    special_values,
    ulp_error,
    worst_error,
)
from common.compiler.primitives import evaluate
from common.core.op import REGISTRY
from common.kernels.math import coefficients, elementary, trigonometric
from tests.helpers.instruction_sets import outputs
from tests.helpers.proofs import rotated

DTYPES = [np.float64, np.float32]
# and their number of operands
EXACT = {"abs": 1, "sign": 1, "signbit": 1, "reciprocal": 1, "sqrt": 1, "square": 1, "maximum": 2, "minimum": 2}
# What the docstrings promise, in ulp (float64, float32)
BOUNDS = {
    "exp": (1.0, 1.0), "expm1": (1.3, 1.3), "log": (1.0, 1.2), "log1p": (1.0, 1.3), "sin": (1.0, 0.51),
    "cos": (1.0, 0.51), "tan": (2.3, 0.51), "tanh": (2.4, 2.4), "sigmoid": (2.4, 2.4), "erf": (1.3, 2.0),
    "pow": (1.4, 0.6), "rsqrt": (1.51, 1.51),
    "exp2": (1.2, 1.3), "log2": (0.9, 1.5), "log10": (0.8, 1.4), "sinh": (2.4, 2.4), "cosh": (1.4, 1.4),
    "asinh": (1.4, 1.6), "acosh": (2.2, 1.6), "atanh": (2.0, 2.2), "softplus": (1.7, 1.8), "hypot": (1.3, 0.51),
    "logaddexp": (2.2, 2.4),
    "asin": (1.2, 1.2), "acos": (1.2, 1.2), "atan": (1.5, 1.5), "atan2": (1.6, 1.6),
    "erfc": (1.6, 0.6), "erfinv": (2.5, 0.6), "lgamma": (2.0, 0.51), "digamma": (2.2, 0.51), "xlogy": (2.0, 2.3),
}  # fmt: skip


def scalar(name):
    """The scalar definition of a function, also of an exact one that is no op."""
    return getattr(elementary, name) if name in EXACT else definition(name)


def compiled(name, dtype):
    count = EXACT.get(name) or operands(name)
    return compile_loop(f"{name}_{np.dtype(dtype).name}", scalar(name), *[dtype] * count)


def bit_inputs(name, dtype, count):
    """Arguments for the exact functions too: those of a function with as many operands."""
    return inputs({1: "tanh", 2: "pow"}[EXACT[name]] if name in EXACT else name, dtype, count)


def test_every_costly_op_is_measured_or_named():
    """Of the functions of `common.kernels.math.elementary`, that is: other ops are exact, or sums and products of
    these.
    """
    costly = {name for name in elementary.__all__ if name in REGISTRY and REGISTRY[name].costly}
    assert costly - set(FUNCTIONS) <= NOT_MEASURED
    assert set(FUNCTIONS) == set(BOUNDS)


@pytest.mark.parametrize(("name", "dtype"), rotated([*FUNCTIONS, *EXACT], DTYPES))
def test_both_backends_give_the_same_bits(name, dtype):
    arguments = bit_inputs(name, dtype, 300_000)
    result = compiled(name, dtype)(*arguments)
    assert difference(result, np.asarray(evaluate(scalar(name), *arguments))) is None


@pytest.mark.parametrize(("name", "dtype"), rotated(FUNCTIONS, DTYPES))
def test_the_last_bits_against_mpmath(name, dtype):
    points = sample(name, dtype, 200_000, seed=1)
    values = evaluate(scalar(name), *points)
    worst, where = worst_error(name, values, points, 800)
    assert worst <= BOUNDS[name][DTYPES.index(dtype)], f"{worst} ulp at {where}"


@pytest.mark.parametrize(("name", "dtype"), rotated([n for n in FUNCTIONS if operands(n) == 1], DTYPES))
def test_special_arguments_against_mpmath(name, dtype):
    x = special_values(dtype)
    values = evaluate(scalar(name), x)
    assert values.dtype == dtype
    inside = REFERENCES[name].inside(x)
    for argument, value in zip(x[inside].tolist(), values[inside].tolist(), strict=True):
        if math.isfinite(argument):
            error = ulp_error(value, reference(name, argument), dtype, REFERENCES[name].floor)
            assert error <= BOUNDS[name][DTYPES.index(dtype)], (argument, value, error)


POLES = {"log": [(0.0, -math.inf), (-0.0, -math.inf)], "log1p": [(-1.0, -math.inf)],
         "rsqrt": [(0.0, math.inf)],
         "erfinv": [(1.0, math.inf), (-1.0, -math.inf)], "digamma": [(0.0, -math.inf), (-0.0, math.inf)],
         "lgamma": [(0.0, math.inf), (-0.0, math.inf), (-1.0, math.inf), (-3.0, math.inf), (-1e20, math.inf)],
}  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", POLES)
def test_poles(name, dtype):
    for argument, value in POLES[name]:
        assert evaluate(scalar(name), np.array([argument], dtype)).tolist() == [value]


OUTSIDE = {
    "log": -0.5,
    "log1p": -1.5,
    "rsqrt": -1.0,
    "sqrt": -1.0,
    "asin": 1.0000002,
    "acos": -1.0000002,
    "erfinv": 1.0000002,
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OUTSIDE)
def test_nan_outside_the_domain(name, dtype):
    assert np.isnan(evaluate(scalar(name), np.array([OUTSIDE[name], np.copysign(np.inf, OUTSIDE[name])], dtype))).all()


LIMITS = {
    "exp": (0.0, math.inf), "expm1": (-1.0, math.inf), "log": (math.nan, math.inf),
    "log1p": (math.nan, math.inf), "sin": (math.nan, math.nan), "cos": (math.nan, math.nan),
    "tan": (math.nan, math.nan), "tanh": (-1.0, 1.0), "sigmoid": (0.0, 1.0), "erf": (-1.0, 1.0),
    "rsqrt": (math.nan, 0.0), "reciprocal": (-0.0, 0.0), "sign": (-1.0, 1.0), "abs": (math.inf, math.inf),
    "sqrt": (math.nan, math.inf), "asin": (math.nan, math.nan), "acos": (math.nan, math.nan),
    "atan": (-math.pi / 2, math.pi / 2), "erfc": (2.0, 0.0), "erfinv": (math.nan, math.nan),
    "lgamma": (math.inf, math.inf), "digamma": (math.nan, math.inf),
}  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", LIMITS)
def test_infinities_and_nan(name, dtype):
    x = np.array([-np.inf, np.inf, np.nan], dtype)
    values = evaluate(scalar(name), x)
    assert difference(values, np.array([*LIMITS[name], np.nan], dtype)) is None


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["expm1", "log1p", "sin", "tan", "tanh", "erf", "sqrt", "asin", "atan"])
def test_zeros_keep_their_sign_and_odd_functions_are_odd(name, dtype):
    x = np.array([-0.0, 0.0], dtype)
    assert difference(evaluate(scalar(name), x), x) is None
    if name in ("sin", "tan", "tanh", "erf", "asin", "atan", "erfinv"):
        points = sample(name, dtype, 3_000)[0]
        values = evaluate(scalar(name), points)
        assert difference(evaluate(scalar(name), -points), -values) is None


@pytest.mark.parametrize(("name", "dtype"), rotated(["pow"], DTYPES))
def test_pow_of_special_operands(name, dtype):
    x, y = (g.ravel() for g in np.meshgrid(special_values(dtype), special_values(dtype)))
    values = evaluate(scalar(name), x, y)
    for base, exponent, value in zip(x.tolist(), y.tolist(), values.tolist(), strict=True):
        odd = math.isfinite(exponent) and math.fmod(abs(exponent), 2.0) == 1.0
        if exponent == 0.5:  # defined as the square root, unlike C's pow at -0 and -inf
            expected = float(dtype(base) if base == 0 else evaluate(np.sqrt, dtype(base)))
        elif exponent in (2.0, 3.0, 4.0, -2.0, -0.5):
            continue  # by products and quotients, below
        else:
            try:
                expected = math.pow(base, exponent)
            except OverflowError:
                expected = math.copysign(math.inf, base if odd else 1.0)
            except ValueError:  # zero to a negative power, or a negative base with a fraction
                expected = math.copysign(math.inf, base if odd else 1.0) if base == 0 else math.nan
        if math.isfinite(expected) and expected != 0 and math.isfinite(exponent):
            with mpmath.workprec(160):
                exact = mpmath.power(mpmath.mpf(base), mpmath.mpf(exponent))
            assert ulp_error(value, exact, dtype) <= 1.4, (base, exponent, value)
        elif math.isnan(expected):
            assert math.isnan(value), (base, exponent, value)
        else:
            assert (value, math.copysign(1, value)) == (expected, math.copysign(1, expected)), (
                base,
                exponent,
            )


@pytest.mark.parametrize(("name", "dtype"), rotated(["atan2"], DTYPES))
def test_atan2_of_special_operands(name, dtype):
    y, x = (g.ravel() for g in np.meshgrid(special_values(dtype), special_values(dtype)))
    values = evaluate(scalar(name), y, x)
    for ordinate, abscissa, value in zip(y.tolist(), x.tolist(), values.tolist(), strict=True):
        expected = math.atan2(ordinate, abscissa)  # C99's for zeros and infinities
        if math.isnan(expected):
            assert math.isnan(value), (ordinate, abscissa)
            continue
        assert math.copysign(1, value) == math.copysign(1, expected), (ordinate, abscissa)
        if not 0 < abs(ordinate) < math.inf or not 0 < abs(abscissa) < math.inf:
            assert value == dtype(expected), (ordinate, abscissa)
        else:  # C's error is 1e-8 of a float32's last place
            exact = expected if dtype is np.float32 else reference(name, ordinate, abscissa)
            assert ulp_error(value, exact, dtype) <= 1.6, (ordinate, abscissa)


@pytest.mark.parametrize("dtype", DTYPES)
def test_exponents_defined_by_value(dtype):
    with np.errstate(all="ignore"):
        x = np.concatenate([special_values(dtype), sample("tanh", dtype, 3_000)[0]])
        meaning = {
            2.0: x * x, 3.0: x * x * x, 4.0: (x * x) * (x * x), 0.5: np.sqrt(x), 1.0: x, 0.0: np.ones_like(x),
            -1.0: 1 / x, -2.0: 1 / (x * x), -0.5: 1 / np.sqrt(x),
        }  # fmt: skip
    for exponent, expected in meaning.items():
        assert difference(evaluate(elementary.pow, x, np.full_like(x, exponent)), expected) is None


@pytest.mark.parametrize("exponent", [n for n in range(-15, 16) if n not in (0, 1, 2, 3, 4, -1, -2)])
def test_few_factors_of_float32_are_multiplied_in_float64(exponent):
    """Whole powers are rounded once: no error is above half a unit of the last place and a little."""
    with np.errstate(all="ignore"):
        x = np.concatenate([special_values(np.float32), sample("exp", np.float32, 1_500)[0]])
        values = evaluate(elementary.pow, x, np.full_like(x, exponent))
        expected = np.prod([x.astype(np.float64)] * abs(exponent), axis=0)
        expected = (1 / expected if exponent < 0 else expected).astype(np.float32)
    assert np.array_equal(np.isnan(values), np.isnan(expected))
    assert np.array_equal(np.signbit(values), np.signbit(expected))
    apart = np.abs(values.view(np.int32).astype(np.int64) - expected.view(np.int32))
    assert np.all((apart <= 1) | np.isnan(expected)), x[apart > 1]
    for base, value in zip(x[:: len(x) // 200].tolist(), values[:: len(x) // 200].tolist(), strict=True):
        if base and math.isfinite(base) and value and math.isfinite(value):
            with mpmath.workprec(160):
                assert ulp_error(value, mpmath.power(mpmath.mpf(base), exponent), np.float32) <= 0.5001


@pytest.mark.parametrize("dtype", DTYPES)
def test_order_of_maximum_and_minimum(dtype):
    x = np.array([0.0, -0.0, np.nan, 1, np.nan, -np.inf], dtype)
    y = np.array([-0.0, 0.0, 1, np.nan, np.nan, np.inf], dtype)
    larger, smaller = evaluate(elementary.maximum, x, y), evaluate(elementary.minimum, x, y)
    assert difference(larger, np.array([0.0, 0.0, np.nan, np.nan, np.nan, np.inf], dtype)) is None
    assert difference(smaller, np.array([-0.0, -0.0, np.nan, np.nan, np.nan, -np.inf], dtype)) is None


def test_pieces_of_half_pi():
    with mpmath.workprec(400):
        for pieces, accurate in ((trigonometric.PIECES_64, 180), (trigonometric.PIECES_32, 104)):
            rest = mpmath.pi / 2 - sum(mpmath.mpf(p) for p in pieces)
            assert abs(rest) < mpmath.ldexp(1, -accurate)


# Runs in a process of its own: the instruction set is chosen once per process
SCRIPT = """
import zlib, numpy as np
from tests.oracle.test_elementary import compiled, bit_inputs, DTYPES, FUNCTIONS
for name in FUNCTIONS:
    for dtype in DTYPES:
        values = compiled(name, dtype)(*bit_inputs(name, dtype, 6000))
        values[np.isnan(values)] = np.nan
        print(name, np.dtype(dtype).name, zlib.crc32(np.asarray(values).tobytes()))
"""


def test_every_polynomial_has_a_name_of_its_own():
    lines = Path(coefficients.__file__).read_text(encoding="utf-8").splitlines()
    names = [line.partition(" = ")[0] for line in lines if " = (" in line and not line.startswith("#")]
    assert len(names) > 30
    assert sorted(names) == sorted(set(names))


def test_every_instruction_set_gives_the_same_bits():
    assert len(outputs(SCRIPT)) == 1


INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_powers_wrap(dtype):
    info = np.iinfo(dtype)
    rng = np.random.default_rng(0)
    ends = np.array([info.min, info.max, 0, 1, 2, 3, 7, info.max - 1], dtype)
    pairs = np.meshgrid(np.concatenate([ends, rng.integers(info.min, info.max, 40, dtype)]), np.arange(70))
    x, y = pairs[0].ravel(), pairs[1].ravel().astype(dtype)
    if info.min < 0:
        x, y = np.concatenate([x, x, [-1, -1, 1]]), np.concatenate([y, -y, [info.min, info.max, info.min]])
    x, y = x.astype(dtype), y.astype(dtype)
    expected = [integer_power(int(a), int(b), info) for a, b in zip(x, y, strict=True)]
    values = evaluate(elementary.pow, x, y)
    assert values.tolist() == expected
    assert difference(compile_loop(f"pow_{dtype}", elementary.pow, dtype, dtype)(x, y), values) is None


def integer_power(x, y, info):
    if y < 0:
        return x ** (y % 2) if abs(x) == 1 else 0
    wrapped = pow(x, y, 1 << info.bits)
    return wrapped - (1 << info.bits) if wrapped > info.max else wrapped
