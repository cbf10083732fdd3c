"""Logarithms, hyperbolic functions and sums of exponentials: bits of both backends, values against mpmath."""

import math

import mpmath as mp
import numpy as np
import pytest

from benchmarks.bits import difference
from benchmarks.elementary.scalar_loop import compile_loop
from benchmarks.elementary.ulp_errors import special_values, ulp_error
from common.compiler.primitives import evaluate
from common.kernels.math import elementary, logarithm_bases
from tests.helpers.instruction_sets import outputs
from tests.helpers.proofs import rotated

DTYPES = [np.float64, np.float32]
LN2 = lambda: mp.log(2)  # noqa: E731
REFERENCES = {
    "exp2": lambda x: mp.power(2, x),
    "log2": lambda x: mp.log(x) / LN2(),
    "log10": lambda x: mp.log(x) / mp.log(10),
    "sinh": mp.sinh,
    "cosh": mp.cosh,
    "asinh": mp.asinh,
    "acosh": mp.acosh,
    "atanh": mp.atanh,
    "softplus": lambda x: mp.log1p(mp.exp(x)),
    "logsigmoid": lambda x: -mp.log1p(mp.exp(-x)),
    "silu": lambda x: x / (1 + mp.exp(-x)),
    "mish": lambda x: x * mp.tanh(mp.log1p(mp.exp(x))),
    "hypot": mp.hypot,
    "logaddexp": lambda x, y: max(x, y) + mp.log1p(mp.exp(-abs(x - y))),
    "logaddexp2": lambda x, y: max(x, y) + mp.log1p(mp.power(2, -abs(x - y))) / LN2(),
}
# What the docstrings promise, in ulp (float64, float32)
BOUNDS = {
    "exp2": (1.2, 1.3), "log2": (0.9, 1.5), "log10": (0.8, 1.4), "sinh": (2.4, 2.4), "cosh": (1.4, 1.4),
    "asinh": (1.4, 1.6), "acosh": (2.2, 1.6), "atanh": (2.0, 2.2), "softplus": (1.7, 1.8),
    "logsigmoid": (1.7, 1.8), "silu": (2.3, 2.3), "mish": (2.1, 2.1), "hypot": (1.3, 0.51),
    "logaddexp": (2.2, 2.4), "logaddexp2": (2.3, 2.4),
}  # fmt: skip
#: Where a function is a real number.
DOMAIN = {"log2": (0.0, math.inf), "log10": (0.0, math.inf), "acosh": (1.0, math.inf), "atanh": (-1.0, 1.0)}
PAIRS = ("hypot", "logaddexp", "logaddexp2")
SUMS = ("logaddexp", "logaddexp2")


def points(name, dtype, count, seed=0):
    """Finite points of the domain: bit patterns of all exponents, and ordinary values where the function bends."""
    rng = np.random.default_rng(seed)
    patterns = [np.frombuffer(rng.bytes(count * dtype(0).itemsize), dtype) for _ in range(1 + (name in PAIRS))]
    near = [rng.uniform(-4, 4, (2, count)), rng.normal(size=(2, count)) * 2.0 ** rng.uniform(-30, 9, (2, count))]
    border = np.stack([1 + x for x in near[1]])
    close = near[1] * rng.uniform(0.3, 1.7, (2, count))
    sets = [patterns, *near, [near[1][0], close[0]], border, 1 / np.cosh(near[0])]
    parts = [np.concatenate([s[i].astype(dtype) for s in sets]) for i in range(len(patterns))]
    low, high = DOMAIN.get(name, (-math.inf, math.inf))
    keep = np.all([np.isfinite(x) & (x > low) & (x < high) for x in parts], axis=0)
    return [x[keep] for x in parts]


def compiled(name, dtype):
    dtypes = [dtype] * (2 if name in PAIRS else 1)
    return compile_loop(f"{name}_{np.dtype(dtype).name}", getattr(elementary, name), *dtypes)


def bit_inputs(name, dtype, count):
    special = np.meshgrid(*[special_values(dtype)] * (2 if name in PAIRS else 1))
    return [np.concatenate([x, s.ravel()]) for x, s in zip(points(name, dtype, count), special, strict=True)]


def error(name, value, arguments, dtype):
    with mp.workprec(300):
        x = [mp.mpf(float(a)) for a in arguments]
        exact = REFERENCES[name](*x)
        if name not in SUMS:
            return ulp_error(value, exact, dtype)
        # of the larger one of the result and its two terms
        larger = max(*map(abs, (exact, max(x), exact - max(x))))
        return ulp_error(float(larger), larger + (mp.mpf(float(value)) - exact), dtype)


@pytest.mark.parametrize(("name", "dtype"), rotated(REFERENCES, DTYPES))
def test_both_backends_give_the_same_bits(name, dtype):
    arguments = bit_inputs(name, dtype, 50_000)
    result = compiled(name, dtype)(*arguments)
    assert difference(result, np.asarray(evaluate(getattr(elementary, name), *arguments))) is None


@pytest.mark.parametrize(("name", "dtype"), rotated(REFERENCES, DTYPES))
def test_the_last_bits_against_mpmath(name, dtype):
    arguments = points(name, dtype, 600, seed=1)
    values = evaluate(getattr(elementary, name), *arguments)
    bound = BOUNDS[name][DTYPES.index(dtype)]
    for value, *point in zip(values.tolist(), *(a.tolist() for a in arguments), strict=True):
        assert error(name, value, point, dtype) <= bound, (point, value)


@pytest.mark.parametrize(("name", "dtype"), rotated(REFERENCES, DTYPES))
def test_special_arguments_against_mpmath(name, dtype):
    grid = [
        x.ravel() for x in np.meshgrid(*[special_values(dtype)[:: 1 + 2 * (name in PAIRS)]] * (1 + (name in PAIRS)))
    ]
    values = evaluate(getattr(elementary, name), *grid)
    assert values.dtype == dtype
    low, high = DOMAIN.get(name, (-math.inf, math.inf))
    bound = BOUNDS[name][DTYPES.index(dtype)]
    for value, *point in zip(values.tolist(), *(x.tolist() for x in grid), strict=True):
        if all(map(math.isfinite, point)) and low < min(point) and max(point) < high:
            assert error(name, value, point, dtype) <= bound, (point, value)
        elif not all(low <= x <= high for x in point):
            assert math.isnan(value), (point, value)


nan, inf = math.nan, math.inf
LIMITS = {  # at -inf, inf, nan
    "exp2": (0.0, inf), "log2": (nan, inf), "log10": (nan, inf), "sinh": (-inf, inf), "cosh": (inf, inf),
    "asinh": (-inf, inf), "acosh": (nan, inf), "atanh": (nan, nan), "softplus": (0.0, inf), "logsigmoid": (-inf, 0.0),
    "silu": (-0.0, inf), "mish": (-0.0, inf),
}  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", LIMITS)
def test_infinities_and_nan(name, dtype):
    values = evaluate(getattr(elementary, name), np.array([-inf, inf, nan], dtype))
    assert difference(values, np.array([*LIMITS[name], nan], dtype)) is None


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["sinh", "asinh", "atanh"])
def test_zeros_keep_their_sign_and_odd_functions_are_odd(name, dtype):
    x = np.array([-0.0, 0.0], dtype)
    assert difference(evaluate(getattr(elementary, name), x), x) is None
    (x,) = points(name, dtype, 3_000)
    values = evaluate(getattr(elementary, name), x)
    assert difference(evaluate(getattr(elementary, name), -x), -values) is None


@pytest.mark.parametrize("dtype", DTYPES)
def test_borders_of_domains(dtype):
    x = np.array([-0.0, 0.0, 1.0], dtype)
    for name in ("log2", "log10"):
        assert difference(evaluate(getattr(elementary, name), x), np.array([-inf, -inf, 0.0], dtype)) is None
    assert (
        difference(evaluate(elementary.acosh, np.array([1.0, 0.5, -3.0], dtype)), np.array([0, nan, nan], dtype))
        is None
    )
    assert difference(evaluate(elementary.atanh, np.array([1.0, -1.0], dtype)), np.array([inf, -inf], dtype)) is None


@pytest.mark.parametrize("dtype", DTYPES)
def test_exact_powers(dtype):
    info = np.finfo(dtype)
    k = np.arange(math.log2(info.smallest_subnormal), info.maxexp).astype(dtype)
    powers = np.ldexp(dtype(1), k.astype(int))
    assert difference(evaluate(elementary.exp2, k), powers) is None
    assert difference(evaluate(elementary.log2, powers), k) is None
    k = np.arange(23 if dtype is np.float64 else 11)
    tens = np.array([float(10**i) for i in k.tolist()], dtype)
    assert difference(evaluate(elementary.log10, tens), k.astype(dtype)) is None


@pytest.mark.parametrize("dtype", DTYPES)
def test_infinities_of_two_operands(dtype):
    x = np.array([inf, -inf, -inf, inf, inf, nan, 1.0, -inf, inf], dtype)
    y = np.array([inf, -inf, inf, nan, 1.0, nan, nan, 2.0, -inf], dtype)
    lengths = [inf, inf, inf, inf, inf, nan, nan, inf, inf]
    sums = [inf, -inf, inf, nan, inf, nan, nan, 2.0, inf]
    assert difference(evaluate(elementary.hypot, x, y), np.array(lengths, dtype)) is None
    for name in SUMS:
        for a, b in ((x, y), (y, x)):
            assert difference(evaluate(getattr(elementary, name), a, b), np.array(sums, dtype)) is None


@pytest.mark.parametrize("bases", ["_TWO", "_TEN"])
def test_constants_of_bases(bases):
    number = 2 if bases == "_TWO" else 10
    for dtype, base in getattr(logarithm_bases, bases).items():
        accurate, short, exponents = (80, 26, 42) if dtype.itemsize == 8 else (36, 12, 16)
        with mp.workprec(200):
            for exact, head, tail, length in (
                (1 / mp.log(number), base.inverse_head, base.inverse_tail, short),
                (LN2() / mp.log(number), base.unit_head, base.unit_tail, exponents),
            ):
                assert abs(exact - mp.mpf(head) - mp.mpf(tail)) < mp.ldexp(1, -accurate)
                assert mp.ldexp(mp.frexp(mp.mpf(head))[0], length) % 1 == 0


# Runs in a process of its own: the instruction set is chosen once per process
SCRIPT = """
import zlib, numpy as np
from tests.oracle.test_logarithms import compiled, bit_inputs, DTYPES, REFERENCES
for name in REFERENCES:
    for dtype in DTYPES:
        values = compiled(name, dtype)(*bit_inputs(name, dtype, 2000))
        values[np.isnan(values)] = np.nan
        print(name, np.dtype(dtype).name, zlib.crc32(np.asarray(values).tobytes()))
"""


def test_every_instruction_set_gives_the_same_bits():
    assert len(outputs(SCRIPT)) == 1
