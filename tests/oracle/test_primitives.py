"""Primitives: compiled bits against numpy for every dtype, and the cases that IEEE or C leave open."""

import numpy as np
import pytest

from benchmarks.bits import difference
from benchmarks.elementary.scalar_loop import compile_loop
from common.compiler import primitives as p

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float32", "float64"]
COUNT = 4_000


def random_bits(dtype, seed):
    """Random bit patterns, small numbers and the ends of the range."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, COUNT).astype(bool)
    x = np.frombuffer(rng.bytes(COUNT * dtype.itemsize), dtype).copy()
    if dtype.kind == "f":
        wide = rng.standard_normal(COUNT // 2) * 10.0 ** rng.integers(-3, 22, COUNT // 2)
        x[: COUNT // 2] = wide.astype(dtype)
        x[:12] = [0, -0.0, np.inf, -np.inf, np.nan, 2.0**63, -(2.0**63), 2.0**31, 255.5, -0.5, 127.5, -129]
    else:
        info = np.iinfo(dtype)
        x[::3] = rng.integers(max(-3, info.min), 4, len(x[::3])).astype(dtype)
        x[:2] = [info.min, info.max]
    return x


def check(name, definition, *dtypes):
    arguments = [random_bits(dtype, seed) for seed, dtype in enumerate(dtypes)]
    if len(arguments) == 2 and np.dtype(dtypes[0]).kind == "i":
        arguments[0][5:8] = np.iinfo(dtypes[0]).min
        arguments[1][5:8] = [-1, 0, 1]
    result = compile_loop(f"{name}_{'_'.join(dtypes)}", definition, *dtypes)(*arguments)
    assert difference(result, np.asarray(p.evaluate(definition, *arguments))) is None


@pytest.mark.parametrize("source", INTEGERS + FLOATS)
def test_conversions(source):
    for target in INTEGERS + FLOATS:
        check(f"to_{target}_from", lambda x, target=target: p.convert(x, target), source)
    check("truth", lambda x: p.select(p.convert(x, "bool"), p.convert(x == x, "int32"), 7), source)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers(dtype):
    check("trunc_divide", p.trunc_divide, dtype, dtype)
    check("floor_divide", p.floor_divide, dtype, dtype)
    check("remainder", p.remainder, dtype, dtype)
    check("constants", lambda x: p.floor_divide(x, 3) + p.trunc_divide(7, x) + p.remainder(x, 5), dtype)
    check("shifts", lambda x, y: (x << y) ^ (x >> (y & 7)), dtype, dtype)
    check("logic", lambda x, y: p.lshr(x, 3) | p.shl(y, 2) ^ ~x, dtype, dtype)
    check("wrapping", lambda x, y: -p.absolute(x) * y + 1 - x, dtype, dtype)
    check("order", lambda x, y: p.select((x < y) | (x == 3), x, p.select(x >= y, y, 0)), dtype, dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_floats(dtype):
    check("arithmetic", lambda x, y: (x + y * 0.1 - 1) / (2 - x) * -y, dtype, dtype)
    check("order", lambda x, y: p.select(((x < y) | (x == y)) & ~(x != y) ^ (x >= 0.5), x, y), dtype, dtype)
    check("bits", lambda x: p.from_bits(p.bits(p.select(x != x, 0.0, x)) ^ 1), dtype)
    check("copysign", p.copysign, dtype, dtype)
    check("constant", lambda x: p.select(x > 0, p.constant(np.inf, x), -0.0) + p.constant(np.nan, x), dtype)
    for function in (p.sqrt, p.floor, p.ceil, p.trunc, p.rint, p.absolute):
        check(function.__name__, function, dtype)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_division_never_traps(dtype):
    info = np.iinfo(dtype)
    x = np.array([info.min, info.max, 7, 0], dtype)
    for function in (p.trunc_divide, p.floor_divide, p.remainder):
        assert p.evaluate(function, x, np.zeros_like(x)).tolist() == [0, 0, 0, 0]
    if info.min < 0:
        minus_one = np.full_like(x, -1)
        for function in (p.trunc_divide, p.floor_divide):
            assert p.evaluate(function, x, minus_one).tolist() == [info.min, -info.max, -7, 0]
        assert p.evaluate(p.remainder, x, minus_one).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_float_to_integer_saturates(dtype):
    info = np.iinfo(dtype)
    x = np.array([np.nan, np.inf, -np.inf, 1e300, -1e300, 2.9, -0.9], np.float64)
    expected = [0, info.max, info.min, info.max, info.min, 2, 0]
    assert p.evaluate(lambda v: p.convert(v, dtype), x).tolist() == expected


def test_division_of_small_integers_is_pythons():
    x, y = (g.ravel() for g in np.meshgrid(np.arange(-9, 10), np.arange(-9, 10)))
    x, y = x[y != 0], y[y != 0]
    pairs = list(zip(x.tolist(), y.tolist(), strict=True))
    assert p.evaluate(p.floor_divide, x, y).tolist() == [a // b for a, b in pairs]
    assert p.evaluate(p.remainder, x, y).tolist() == [a % b for a, b in pairs]
    assert p.evaluate(p.trunc_divide, x, y).tolist() == [int(a / b) for a, b in pairs]


def test_misuse_is_refused():
    from llvmlite import ir

    from common.compiler.llvm_primitives import emit_scalar

    kind = ir.FloatType()
    function = ir.Function(ir.Module(), ir.FunctionType(kind, [kind]), "f")
    builder = ir.IRBuilder(function.append_basic_block())
    operand = [(function.args[0], "float32")]
    for definition, message in (
        (lambda x: x if x > 0 else -x, "must not branch"),
        (lambda x: x + p.convert(x, "float64"), "one dtype"),
        (lambda _: 1.0, "must return a value"),
        (lambda x: x + np.float64(1), "cannot combine"),
        (lambda x: x & 1, "not defined"),
        (lambda x: p.select(x > 0, 1, 2), "at least one"),
    ):
        with pytest.raises(TypeError, match=message):
            emit_scalar(builder, definition, operand)
