"""Signs, infinities, NaN, nearness, bits and blends against numpy and plain Python."""

import math

import numpy as np
import pytest

import common.ops.functional as F
import dynamic as tw
import static
from benchmarks.bits import difference
from common.core.errors import TraceError
from tests.parity.arrays import pairs, special

RNG = np.random.default_rng(50)
FLOATS = ["float32", "float64"]


def ours(f, *arrays):
    return f(*map(tw.tensor, arrays)).numpy()


@pytest.mark.parametrize("dtype", FLOATS)
def test_one_operand(dtype):
    x = np.concatenate([special(dtype), RNG.normal(size=500).astype(dtype) * 10, np.arange(-8, 8, dtype=dtype) / 2])
    with np.errstate(all="ignore"):
        expected = {
            "floor": np.floor(x), "ceil": np.ceil(x), "trunc": np.trunc(x), "fix": np.trunc(x), "round": np.rint(x),
            "frac": x - np.trunc(x), "isfinite": np.isfinite(x), "isinf": np.isinf(x),
            "signbit": np.signbit(x) & ~np.isnan(x),
        }  # fmt: skip
    for name, values in expected.items():
        assert difference(ours(getattr(F, name), x), values) is None, name


def test_whole_numbers_are_never_special():
    x = np.array([-3, 0, 3])
    for name in ("floor", "ceil", "trunc", "round", "nan_to_num"):
        assert ours(getattr(F, name), x).tolist() == [-3, 0, 3], name
    assert ours(F.isfinite, x).all()
    assert not ours(F.isinf, x).any()
    assert ours(F.signbit, x).tolist() == [True, False, False]


@pytest.mark.parametrize("dtype", FLOATS)
def test_two_operands(dtype):
    x, y = pairs(RNG, 2, dtype)
    known = ~np.isnan(y)
    assert difference(ours(F.copysign, x[known], y[known]), np.copysign(x, y)[known]) is None
    assert not np.signbit(ours(F.copysign, np.array([-1.0], dtype), np.array([-math.nan], dtype))).any()
    for name, function in (("fmax", max), ("fmin", min)):
        for a, b, c in zip(x.tolist(), y.tolist(), ours(getattr(F, name), x, y).tolist(), strict=True):
            if a != a or b != b:
                assert c == (b if a != a else a) or (a != a and b != b and c != c)
            elif a == b == 0:
                assert math.copysign(1, c) == function(math.copysign(1, a), math.copysign(1, b))
            else:
                assert c == function(a, b)
    steps = ours(F.heaviside, x, y)
    assert difference(steps, np.where(x == 0, y, (x > 0).astype(dtype))) is None


@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_to_num(dtype):
    x = special(dtype)
    assert difference(ours(F.nan_to_num, x), np.nan_to_num(x)) is None
    replaced = np.nan_to_num(x, nan=0.1, posinf=2, neginf=-3)
    assert difference(ours(lambda x: F.nan_to_num(x, 0.1, 2, -3), x), replaced) is None


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("equal_nan", [False, True])
def test_isclose(dtype, equal_nan):
    x, y = pairs(RNG, 2, dtype)
    with np.errstate(all="ignore"):
        y = np.where(RNG.random(y.shape) < 0.5, x * np.asarray(1 + RNG.normal(size=y.shape) * 2e-5, dtype), y)
        gap = np.abs(x - y)
        near = (x == y) | (np.isfinite(gap) & (gap <= y.dtype.type(1e-8) + np.abs(y.dtype.type(1e-5) * y)))
    expected = near | (np.isnan(x) & np.isnan(y)) if equal_nan else near
    result = ours(lambda a, b: F.isclose(a, b, equal_nan=equal_nan), x, y)
    assert difference(result, expected) is None
    assert 0 < result.sum() < result.size
    with np.errstate(all="ignore"):
        theirs = np.isclose(x, y, equal_nan=equal_nan)
    assert (result != theirs).mean() < 0.02  # numpy rounds the tolerance elsewhere


def test_isclose_refuses_and_allclose_is_a_bool():
    x = np.array([1.0, math.nan])
    for engine in (tw, static):
        assert engine.allclose(x, x, equal_nan=True) is True
        assert engine.allclose(x, x) is False
        assert engine.allclose(x[:0], x[:0]) is True
        with pytest.raises(TypeError, match="float64 did not match float32"):
            engine.isclose(x, x.astype(np.float32))
        with pytest.raises(ValueError, match="rtol must be greater than or equal to zero, but got -1"):
            engine.isclose(x, x, rtol=-1)
    assert tw.tensor([1.0, 2.0]).allclose(tw.tensor([1.0, 2.0000001]))
    assert not tw.allclose(tw.tensor([2**24]), tw.tensor([2**24 + 2]), rtol=0, atol=0)
    with pytest.raises(TraceError):
        static.function(lambda x: static.allclose(x, x))(x)


def test_bits_and_shifts():
    x, y = np.array([-128, -1, 5, 127], np.int8), np.array([1, 7, 3, 100], np.int8)
    for f, formula in {
        F.bitwise_and: np.bitwise_and, F.bitwise_or: np.bitwise_or, F.bitwise_xor: np.bitwise_xor,
        F.bitwise_left_shift: np.left_shift, F.bitwise_right_shift: np.right_shift,
    }.items():  # fmt: skip
        assert difference(ours(f, x, y), formula(x, y)) is None
    assert ours(F.bitwise_left_shift, x, -y).tolist() == [0] * 4
    assert ours(F.bitwise_right_shift, x, -y).tolist() == [-1, -1, 0, 0]
    assert (~tw.tensor(x)).tolist() == (~x).tolist()


def test_operators_mean_truth_for_bools_and_bits_for_integers():
    @static.function
    def f(i, b):
        return i & 6, i | 8, i ^ 3, 6 & i, ~i, i << 1, i >> 1, 1 << i, b & ~b, b | True, True ^ b, b & i, i & True

    i, b = np.array([1, 2, 7]), np.array([True, False, True])
    expected = [np.asarray(x) for x in f.target(i, b)]
    for x, z, want in zip(f.target(tw.tensor(i), tw.tensor(b)), f(i, b), expected, strict=True):
        assert x.numpy().dtype == z.dtype == want.dtype
        assert x.tolist() == z.tolist() == want.tolist()
    names = {node.name for node in f.newest.graph.nodes}
    assert {"bitwise_and", "logical_and", "logical_not", "bitwise_not"} <= names
    for operator in (lambda x: x & 1, lambda x: ~x, lambda x: 1 ^ x, lambda x: x << 1):
        with pytest.raises(TypeError, match="not implemented for float32"):
            operator(tw.tensor([1.0]))


def test_blends():
    a, b, w = (RNG.normal(size=50) for _ in range(3))
    expected = np.where(np.abs(w) < 0.5, a + w * (b - a), b - (b - a) * (1 - w))
    assert difference(ours(F.lerp, a, b, w), expected) is None
    assert tw.lerp(tw.tensor(a), tw.tensor(b), 1.0).tolist() == b.tolist()
    assert difference(ours(lambda x, y, z: F.addcmul(x, y, z, value=0.3), a, b, w), a + 0.3 * b * w) is None
    assert difference(ours(lambda x, y, z: F.addcdiv(x, y, z, value=0.3), a, b, w), a + 0.3 * b / w) is None
    assert tw.addcmul(*[tw.tensor([2, 3])] * 3, value=2).tolist() == [10, 21]
    with pytest.raises(ValueError, match="must not be a floating point number"):
        tw.addcmul(*[tw.tensor([2, 3])] * 3, value=0.5)
    with pytest.raises(TypeError, match="Integer division with addcdiv is not supported"):
        tw.addcdiv(tw.tensor([1.0]), tw.tensor([2]), tw.tensor([3]))


def test_gradients_at_special_points():
    x = tw.tensor([1.0, math.nan, math.nan, 2.0, -0.0, math.inf], requires_grad=True)
    y = tw.tensor([1.0, 3.0, math.nan, math.nan, 0.0, 1.0], requires_grad=True)
    tw.fmax(x, y).sum().backward()
    assert x.grad.tolist() == [1, 0, 1, 1, 1, 1]  # as PyTorch: a tie, and two NaN, go to the first
    assert y.grad.tolist() == [0, 1, 0, 0, 0, 0]
    x.grad = None
    tw.nan_to_num(x).sum().backward()
    assert x.grad.tolist() == [1, 0, 0, 1, 1, 0]
    x.grad = None
    tw.copysign(x, -1).sum().backward()
    assert x.grad.tolist()[0] == -1
    assert x.grad.tolist()[4] == 0
    assert not tw.heaviside(x, y).requires_grad
