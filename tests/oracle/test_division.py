"""Remainders and whole quotients against rational arithmetic, C's fmod and Python's operators; zero divisors."""

import math
from fractions import Fraction

import numpy as np
import pytest

import dynamic
import static
from common.compiler.primitives import evaluate
from common.core.errors import DivisionByZeroError
from common.kernels.math import division

FLOATS = [np.float32, np.float64]
INTEGERS = ["int8", "uint8", "int16", "int32", "int64"]


def bit_patterns(dtype, count, seed):
    rng = np.random.default_rng(seed)
    x = np.frombuffer(rng.bytes(count * np.dtype(dtype).itemsize), dtype).copy()
    return x[np.isfinite(x)][: count // 2]


def hard_pairs(dtype, count=4000):
    """Every size of quotient: random bit patterns, neighbours of multiples, subnormal divisors."""
    x, y = bit_patterns(dtype, 2 * count, 1)[:count], bit_patterns(dtype, 2 * count, 2)[:count]
    rng, info = np.random.default_rng(3), np.finfo(dtype)
    with np.errstate(over="ignore"):
        near = (y[: count // 2] * rng.integers(-(2**20), 2**20, count // 2)).astype(dtype)
    near = np.nextafter(near, rng.choice(np.array([-np.inf, 0, np.inf], dtype), count // 2))
    ends = np.array([info.max, info.tiny, info.smallest_subnormal, 1, 3, 1 + info.eps, 2 - info.eps], dtype)
    a, b = (g.ravel() for g in np.meshgrid(np.concatenate([ends, -ends]), np.concatenate([ends, -ends])))
    x, y = np.concatenate([x, near, a]), np.concatenate([y, y[: count // 2], b])
    keep = np.isfinite(x) & (y != 0)
    return x[keep], y[keep]


@pytest.mark.parametrize("dtype", FLOATS)
def test_fmod_is_exact(dtype):
    x, y = hard_pairs(dtype)
    ours = evaluate(division.fmod, x, y)
    assert ours.dtype == dtype
    quotients = set()
    for a, b, r in zip(x.tolist(), y.tolist(), ours.tolist(), strict=True):
        exact = Fraction(a) - math.trunc(Fraction(a) / Fraction(b)) * Fraction(b)
        assert Fraction(r) == exact, (a, b)
        assert math.copysign(1, r) == math.copysign(1, a), (a, b)
        quotients.add(math.frexp(a)[1] - math.frexp(b)[1])
    assert max(quotients) > 1.9 * np.finfo(dtype).maxexp  # the largest quotients there are took part


@pytest.mark.parametrize("dtype", FLOATS)
def test_compiled_fmod_against_c(dtype):
    x, y = bit_patterns(dtype, 200_000, 4)[:90_000], bit_patterns(dtype, 200_000, 5)[:90_000]
    ours = dynamic.fmod(x, y).numpy()
    expected = [math.fmod(a, b) if b else math.nan for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    np.testing.assert_array_equal(ours, np.array(expected, dtype))


def test_remainder_and_floor_division_are_pythons():
    x, y = hard_pairs(np.float64)
    rest, quotient = dynamic.remainder(x, y).tolist(), dynamic.floor_divide(x, y).tolist()
    for a, b, r, q in zip(x.tolist(), y.tolist(), rest, quotient, strict=True):
        assert r == a % b, (a, b)
        with_sign = math.copysign(1, q) == math.copysign(1, a // b) if math.isfinite(q) else True
        assert q == a // b or not math.isfinite(q), (a, b)
        assert with_sign, (a, b)


@pytest.mark.parametrize("dtype", FLOATS)
def test_floor_division_below_2_to_the_52_is_exact(dtype):
    x, y = hard_pairs(dtype)
    limit = 2 ** (np.finfo(dtype).nmant)
    for a, b, q in zip(x.tolist(), y.tolist(), dynamic.floor_divide(x, y).tolist(), strict=True):
        exact = math.floor(Fraction(a) / Fraction(b))
        if abs(exact) < limit:
            assert q == exact, (a, b)


INF, NAN = math.inf, math.nan
SPECIAL = [  # as PyTorch 2: (dividend, divisor): fmod, remainder, floor_divide, trunc
    ((-0.0, 2.0), (-0.0, -0.0, -0.0, -0.0)),
    ((-4.0, -2.0), (-0.0, -0.0, 2.0, 2.0)),
    ((4.0, -2.0), (0.0, 0.0, -2.0, -2.0)),
    ((-7.0, INF), (-7.0, INF, -1.0, -0.0)),
    ((7.0, INF), (7.0, 7.0, 0.0, 0.0)),
    ((7.0, -INF), (7.0, -INF, -1.0, -0.0)),
    ((INF, 2.0), (NAN, NAN, NAN, INF)),
    ((7.0, 0.0), (NAN, NAN, INF, INF)),
    ((7.0, -0.0), (NAN, NAN, -INF, -INF)),
    ((0.0, 0.0), (NAN, NAN, NAN, NAN)),
    ((NAN, 2.0), (NAN, NAN, NAN, NAN)),
    ((2.0, NAN), (NAN, NAN, NAN, NAN)),
    ((-1e-20, 1.0), (-1e-20, 1.0, -1.0, -0.0)),
]


@pytest.mark.parametrize("dtype", FLOATS)
def test_special_operands(dtype):
    x, y = (np.array(column, dtype) for column in zip(*(pair for pair, _ in SPECIAL), strict=True))
    results = zip(*(values for _, values in SPECIAL), strict=True)
    functions = (division.fmod, division.remainder, division.floor_divide, division.trunc_divide)
    for function, expected in zip(functions, results, strict=True):
        ours = evaluate(function, x, y)
        wanted = np.array(expected, dtype)
        np.testing.assert_array_equal(ours, wanted, err_msg=function.__name__)
        known = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(ours[known]), np.signbit(wanted[known]), err_msg=function.__name__)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_are_pythons_and_wrap(dtype):
    info = np.iinfo(dtype)
    low = max(-9, info.min)
    x, y = (g.ravel() for g in np.meshgrid(np.arange(low, 10), [v for v in range(low, 10) if v]))
    x = np.concatenate([x, [info.min, info.min, info.max]]).astype(dtype)
    y = np.concatenate([y, [-1 if low < 0 else 1, 1, 2]]).astype(dtype)
    wrapped = {-info.min: info.min}

    def check(ours, formula):
        expected = [wrapped.get(v, v) for v in (formula(int(a), int(b)) for a, b in zip(x, y, strict=True))]
        assert ours.dtype == dtype
        assert ours.tolist() == expected

    for tw in (dynamic, static):
        check(tw.floor_divide(x, y), lambda a, b: a // b)
        check(tw.remainder(x, y), lambda a, b: a % b)
        check(tw.fmod(x, y), lambda a, b: a - math.trunc(Fraction(a, b)) * b)
        check(tw.div(x, y, rounding_mode="trunc"), lambda a, b: math.trunc(Fraction(a, b)))
        check(tw.div(x, y, rounding_mode="floor"), lambda a, b: a // b)


def test_operators_and_their_reflections():
    @static.function
    def compiled(x, y):
        return (x // y, x % y, *divmod(x, y), x // 3, x % 3, *divmod(x, 3), 7 // y, 7 % y, *divmod(7, y))

    x, y = np.array([-7, 7, 9]), np.array([2, -2, 4])
    eager = compiled.target(dynamic.tensor(x), dynamic.tensor(y))
    expected = compiled.target(x, y)
    for ours, theirs, wanted in zip(eager, compiled(x, y), expected, strict=True):
        assert ours.tolist() == theirs.tolist() == wanted.tolist()
    assert (x // dynamic.tensor(y)).tolist() == (x // y).tolist()
    with pytest.raises(TypeError):
        dynamic.tensor(x) // "2"


ZERO_DIVISIONS = {
    "//": lambda tw, x, y: x // y,
    "%": lambda tw, x, y: x % y,
    "divmod": lambda tw, x, y: divmod(x, y)[1],
    "fmod": lambda tw, x, y: tw.fmod(x, y),
    "div": lambda tw, x, y: tw.div(x, y, rounding_mode="trunc"),
    "of a number": lambda tw, x, y: 5 // y + x,
    "broadcast": lambda tw, x, y: x[:, None] // y,
    "0-d": lambda tw, x, y: x // y[2],
    "view": lambda tw, x, y: x[1:] % y[1:],
}


@pytest.mark.parametrize("name", ZERO_DIVISIONS)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_division_by_zero_raises_in_both_engines(dtype, name):
    f = ZERO_DIVISIONS[name]
    x, good, bad = (np.array(v, dtype) for v in ([1, 2, 3], [1, 2, 3], [1, 2, 0]))
    compiled = static.function(lambda x, y: f(static, x, y))
    expected = f(dynamic, dynamic.tensor(x), dynamic.tensor(good)).tolist()
    assert compiled(x, good).tolist() == expected
    with pytest.raises(ZeroDivisionError, match="integer division by zero"):
        f(dynamic, dynamic.tensor(x), dynamic.tensor(bad))
    with pytest.raises(DivisionByZeroError, match=rf"integer division by zero\n  in .*{__file__}:"):
        compiled(x, bad)
    assert compiled(x, good).tolist() == expected


@pytest.mark.parametrize("number", [0, False])
def test_a_number_that_is_zero_in_the_dtype(number):
    x = np.array([1, 2], np.int8)
    for run in (lambda f: f(dynamic.tensor(x)), lambda f: static.function(f)(x)):
        for divide in (lambda x: x // number, lambda x: x % number, lambda x: x // 256):
            with pytest.raises(DivisionByZeroError):
                run(divide)


def test_state_is_unchanged_after_a_division_by_zero():
    total, x = dynamic.tensor([10, 20]), np.array([1, 0])

    @static.function
    def step(x):
        total.add_(1)
        total.floor_divide_(x)
        return total * 2

    with pytest.raises(DivisionByZeroError):
        step(x)
    assert total.tolist() == [10, 20]
    with pytest.raises(DivisionByZeroError) as caught:
        total //= dynamic.tensor(x)
    assert total.tolist() == [10, 20]
    lines = []
    trace = caught.tb
    while trace:
        lines.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
        trace = trace.tb_next
    assert lines[0][0] == __file__
    assert step(np.array([1, 7])).tolist() == [22, 6]
    assert total.tolist() == [11, 3]


def test_divisors_of_no_elements_and_of_floats_are_fine():
    empty = np.zeros(0, np.int64)
    for tw in (dynamic, static):
        assert tw.floor_divide(empty, empty).shape == (0,)
        assert np.isinf(np.asarray(tw.floor_divide(np.ones(1, np.int64), np.zeros(1, np.float32)))).all()
        assert np.isnan(np.asarray(tw.remainder(np.ones(1), 0))).all()


def test_in_place_operators_write_to_the_same_memory():
    memory = np.array([7.5, -7.5])
    x = y = dynamic.from_numpy(memory)
    x //= 2
    assert x is y
    assert memory.tolist() == [3, -4]
    x %= 3
    assert memory.tolist() == [0, 2]
    bits = np.array([6, 7])
    z = w = dynamic.from_numpy(bits)
    z &= 3
    z |= 8
    z ^= 1
    z <<= 2
    z >>= 1
    assert z is w
    assert bits.tolist() == [(((v & 3) | 8) ^ 1) << 2 >> 1 for v in (6, 7)]
    with pytest.raises(TypeError, match="can't be cast"):
        z //= 2.5


def test_rounding_to_decimals_and_the_modes_of_div():
    x = np.array([0.5, 1.5, -2.5, 2.675, -1234.5678, 1e300, INF, -0.2])
    for decimals in (0, 1, 2, -1, -2, -3):
        scale = 10.0 ** abs(decimals)
        with np.errstate(all="ignore"):
            expected = np.rint(x * scale) / scale if decimals >= 0 else np.rint(x / scale) * scale
        ours = dynamic.round(x, decimals=decimals).numpy()
        np.testing.assert_array_equal(ours, expected)
        np.testing.assert_array_equal(np.signbit(ours), np.signbit(expected))
    with pytest.raises(ValueError, match="one of None, 'trunc', or 'floor' but found 'ceil'"):
        dynamic.div(x, 2, rounding_mode="ceil")
    with pytest.raises(TypeError, match="decimals are not implemented for int64"):
        dynamic.round(np.array([1]), decimals=1)


def hard_integers(dtype, count=3000):
    """Pairs of integers: random lengths, neighbours of multiples, the least and the greatest; no divisor is 0."""
    rng, info = np.random.default_rng(6), np.iinfo(dtype)
    x, y = (rng.integers(info.min, info.max, count, dtype, endpoint=True) for _ in range(2))
    x, y = (z >> rng.integers(0, info.bits, count).astype(dtype) for z in (x, y))
    near = y * rng.integers(0, 100, count).astype(dtype) + rng.integers(0, 3, count).astype(dtype)
    middle = info.bits // 2
    ends = [info.min, info.min + 1, 1, 2, 3, info.max - 1, info.max, info.max // 2, 1 << middle, (1 << middle) - 1]
    ends = np.array(ends if info.min == 0 else [*ends, -1, -2, -3, info.min // 2], dtype)
    a, b = (g.ravel() for g in np.meshgrid(ends, ends))
    x, y = np.concatenate([x, near, a]), np.concatenate([y, y, b])
    return x[y != 0], y[y != 0]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_in_the_lanes_of_vectors(dtype):
    """Divided by a vector, by a number that is an argument, and by one that the text of the kernel says."""
    x, y = hard_integers(dtype)

    def exact(x, y):
        pairs = list(zip(x.tolist(), np.broadcast_to(y, x.shape).tolist(), strict=True))
        return [a // b for a, b in pairs], [a % b for a, b in pairs], [int(Fraction(a, b)) for a, b in pairs]

    def wrapped(found):  # the least integer over -1 is too large by one
        size = 8 * np.dtype(dtype).itemsize
        low = 0 if np.dtype(dtype).kind == "u" else 1 << (size - 1)
        return [np.array([(int(z) + low) % (1 << size) - low for z in row], dtype) for row in found]

    f = static.function(lambda x, y: (x // y, x % y, static.div(x, y, rounding_mode="trunc")))
    for divisor in (y, y[0], y[1]):
        for ours, right in zip(f(x, divisor), wrapped(exact(x, divisor)), strict=True):
            np.testing.assert_array_equal(ours, right)
    by_seven = static.function(lambda x: (x // 7, x % 7, static.div(x, 7, rounding_mode="trunc")))
    for ours, right in zip(by_seven(x), wrapped(exact(x, np.array(7, dtype))), strict=True):
        np.testing.assert_array_equal(ours, right)
