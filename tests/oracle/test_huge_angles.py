"""sin, cos, tan beyond the vectorised reduction: values against mpmath, bits of loops, lanes, engines."""

import re

import mpmath as mp
import numpy as np
import pytest

import common.ops.functional as F
from benchmarks.bits import difference
from benchmarks.elementary.scalar_loop import compile_loop
from benchmarks.elementary.ulp_errors import ulp_error
from common.compiler import llvm_engine
from common.compiler import primitives as p
from common.compiler.primitives import evaluate
from common.kernels.math import elementary, payne_hanek
from common.kernels.math.trigonometric import LIMIT
from tests.parity.engines import Derivatives

DTYPES = [np.float64, np.float32]
NAMES = ["sin", "cos", "tan"]
BOUNDS = {"sin": (1.0, 0.51), "cos": (1.0, 0.51), "tan": (2.3, 0.51)}


def angles(dtype, count):
    """Both signs, all exponents beyond the limit, multiples of pi/2, the hardest argument of float64."""
    rng = np.random.default_rng(3)
    low, high = np.log2(LIMIT[np.dtype(dtype)]), np.log2(float(np.finfo(dtype).max))
    anywhere = 2.0 ** rng.uniform(low - 1, high, count) * rng.choice([-1.0, 1.0], count)
    with mp.workprec(1200):
        near = [float(mp.nint(mp.mpf(2) ** e) * mp.pi / 2) for e in rng.uniform(low, high - 2, count // 4).tolist()]
    hardest = [6381956970095103.0 * 2.0**797] if dtype is np.float64 else []  # 2^-62 beside a multiple of pi/2
    limit = dtype(LIMIT[np.dtype(dtype)])
    border = [limit, np.nextafter(limit, dtype(np.inf)), np.finfo(dtype).max, 1e22]
    return np.concatenate([anywhere, near, hardest, np.array(border, np.float64)]).astype(dtype)


def compiled(name, dtype):
    return compile_loop(f"{name}_{np.dtype(dtype).name}", getattr(elementary, name), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_values_against_mpmath(name, dtype):
    x = angles(dtype, 1500)
    for argument, value in zip(x.tolist(), evaluate(getattr(elementary, name), x).tolist(), strict=True):
        with mp.workprec(1400):
            exact = getattr(mp, name)(mp.mpf(argument))
        assert ulp_error(value, exact, dtype) <= BOUNDS[name][DTYPES.index(dtype)], argument


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_a_result_depends_on_its_element_alone(name, dtype):
    """Ordinary and huge angles in every lane, in vectors and in the rest of a loop, against the numpy backend."""
    rng = np.random.default_rng(4)
    huge, loop, function = angles(dtype, 400), compiled(name, dtype), getattr(elementary, name)
    for n in (1, 7, 8, 63, 4096):
        x = np.where(rng.random(n) < 0.2, rng.choice(huge, n), rng.uniform(-99, 99, n)).astype(dtype)
        x[rng.random(n) < 0.02] = rng.choice([np.inf, -np.inf, np.nan])
        alone = np.array([loop(x[i : i + 1])[0] for i in range(n)])
        assert difference(loop(x), alone) is None
        assert difference(loop(x), evaluate(function, x)) is None
    for lane in range(40):
        x = np.ones(40, dtype)
        x[lane] = huge[lane]
        assert difference(loop(x), evaluate(function, x)) is None


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_parity_inside_programs(name, dtype):
    f = getattr(F, name)
    program = Derivatives(lambda x, b: (F.sum(f(x * 1.5) * b, 1), F.sum(f(x) + f(b), 0)))
    rng = np.random.default_rng(5)
    for n in (4, 33, 1, 0):
        x = rng.choice(np.concatenate([angles(dtype, 40) * dtype(0.1), np.linspace(-9, 9, 90).astype(dtype)]), (n, 19))
        program.check([x, x[:1].copy() if n else np.ones((1, 19), dtype)], rng, name, interpreter=n == 4)


def test_odd_and_even():
    for dtype in DTYPES:
        x = angles(dtype, 300)
        for name, sign in (("sin", -1), ("cos", 1), ("tan", -1)):
            f = getattr(elementary, name)
            assert difference(evaluate(f, -x), sign * evaluate(f, x)) is None


def test_digits_of_two_over_pi():
    with mp.workprec(1400):
        number = int(mp.floor(mp.ldexp(2 / mp.pi, 26 * 46)))
    assert payne_hanek.digits_of_two_over_pi()[:2] == (0, 0)
    assert sum(d << 26 * (45 - i) for i, d in enumerate(payne_hanek.digits_of_two_over_pi()[2:])) == number
    assert all((e * 2521) >> 16 == e // 26 for e in range(2047 - 1025 + 1))
    assert (2047 - 1025) // 26 + payne_hanek.COLUMNS + 2 <= payne_hanek.DIGITS


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_loop_stays_vectorised(dtype, monkeypatch):
    """Eight lanes (two without wide registers) at once, and no call but the one that is rarely taken."""
    texts = []
    emit = llvm_engine.emit
    monkeypatch.setattr(llvm_engine, "emit", lambda module, *rest: (texts.append(str(module)), emit(module, *rest))[1])
    monkeypatch.setattr("common.compiler.disk_cache.read", lambda key, *_, **__: None)
    compile_loop(f"sine_{np.dtype(dtype).name}_again", lambda x: elementary.sin(x), dtype)
    (body,) = (text[text.index(start) :] for text in texts if (start := "define i32 @twingrad_") in text)
    body = body[: body.index("\n}")]
    assert " x double> " in body
    calls = set(re.findall(r"call .*?@([\w.]+)\(", body))
    assert {call for call in calls if not call.startswith("llvm.")} == {f"twingrad_library.huge_sin.{np.dtype(dtype)}"}


def test_the_primitive():
    def tenfold(x):
        return x * 10.0

    def definition(x):
        return p.beyond(x + 1.0, x, 2.0, tenfold)

    x = np.array([0.0, 2.0, -2.0, 2.5, -3.0, np.inf, np.nan])
    expected = np.array([1.0, 3.0, -1.0, 25.0, -30.0, np.inf, np.nan])
    assert difference(evaluate(definition, x), expected) is None
    assert difference(compile_loop("beyond_test", definition, np.float64)(x), expected) is None
    assert evaluate(definition, np.float64(3.0)) == 30.0


def test_definitions_of_one_name_are_kept_apart():
    def pick(factor):
        def chosen(x):
            return x * factor

        return chosen

    twice, thrice = pick(2.0), pick(3.0)

    def definition(x):
        return p.beyond(p.beyond(x, x, 1.0, twice), x, 4.0, thrice)

    x = np.array([0.5, 2.0, 5.0], np.float32)
    assert compile_loop("beyond_twice", definition, np.float32)(x).tolist() == [0.5, 4.0, 15.0]
