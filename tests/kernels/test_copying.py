"""Moving and making elements: against numpy, by bits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dynamic as tw
from common.compiler.primitives import convert, evaluate
from common.kernels.arrays import copying
from tests.helpers.proofs import examples
from tests.kernels.run import assert_same_bits, run, special_values

DTYPES = ["float32", "float64", "int64", "int32", "int8", "bool"]


def strided(x):
    """Offset, shape and strides of a view of a flat array, in elements."""
    base = x
    while base.base is not None:
        base = base.base
    offset = (x.__array_interface__["data"][0] - base.__array_interface__["data"][0]) // x.itemsize
    return x.shape, offset, tuple(s // x.itemsize for s in x.strides)


def view_of(data, base):
    shape = [data.draw(st.integers(0, 5)) for _ in range(data.draw(st.integers(0, 5)))]
    x = base[: int(np.prod(shape))].reshape(shape)
    for axis in range(len(shape)):
        kind = data.draw(st.sampled_from(["all", "reversed", "second", "tail"]))
        cut = {
            "all": slice(None),
            "reversed": slice(None, None, -1),
            "second": slice(None, None, 2),
            "tail": slice(1, None),
        }
        x = x[(slice(None),) * axis + (cut[kind],)]
    return x.transpose(data.draw(st.permutations(range(x.ndim))))


@settings(max_examples=examples(300), deadline=None)
@given(st.data(), st.sampled_from(["float32", "float64", "bool"]))
def test_copy_from_any_view(data, dtype):
    base = special_values(np.random.default_rng(0), (5**5,), "int8" if dtype == "bool" else dtype)
    base = base.astype(dtype, copy=False)
    x = view_of(data, base)
    if data.draw(st.booleans()) and x.ndim < 5:
        x = np.broadcast_to(x, (3, *x.shape))
    out = np.empty(x.shape, dtype)
    assert run(copying.copy_source(dtype), [base, out], copying.copy_args(*strided(x))) == 0
    assert_same_bits(out, np.array(x, order="C"))


@settings(max_examples=examples(200), deadline=None)
@given(st.data())
def test_copy_into_any_view(data):
    base = np.zeros(5**5, "float32")
    place = view_of(data, base)
    x = np.random.default_rng(0).normal(size=place.shape).astype("float32")
    shape, offset, strides = strided(place)
    expected = base.copy()
    np.lib.stride_tricks.as_strided(expected[offset:], shape, tuple(4 * s for s in strides))[...] = x
    call = copying.scatter("float32", shape, offset, strides, (0, 1))
    assert run(call.source, [x, base], call.ints) == 0
    assert_same_bits(base, expected)


@pytest.mark.parametrize("shape", [(1000, 300), (33, 65), (3, 40, 50)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8"])
def test_transpose(shape, dtype):
    x = np.random.default_rng(0).normal(size=shape).astype(dtype)
    view = x.swapaxes(-1, -2)
    out = np.empty(view.shape, dtype)
    run(copying.copy_source(dtype), [x, out], copying.copy_args(*strided(view)))
    assert_same_bits(out, np.ascontiguousarray(view))


def test_dimensions_are_merged():
    assert copying.copy_args((3, 4, 5))[:4] == (1, 0, 0, 60)
    assert copying.copy_args((3, 4, 5), 0, (1, 15, 3))[0] == 2
    assert copying.copy_args(())[0] == 1


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("value", [0, 1, -1, 2.5, -0.0, float("nan"), float("-inf")])
def test_fill(dtype, value):
    if np.dtype(dtype).kind != "f" and not np.isfinite(value):
        value = 3
    out = np.empty(37, dtype)
    call = copying.fill(dtype, 37, value)
    assert run(call.source, [out], call.ints) == 0
    assert_same_bits(out, np.full(37, np.asarray(value).astype(dtype)))


@pytest.mark.parametrize("dtype", DTYPES[:-1])
@pytest.mark.parametrize("start_step", [(0, 1), (-7, 3), (0.1, 0.1), (5, -0.25), (1e-3, 1)])
@pytest.mark.parametrize("n", [0, 1, 40])
def test_arange(dtype, start_step, n):
    start, step = start_step
    out = np.empty(n, dtype)
    call = copying.arange(dtype, n, start, step)
    assert run(call.source, [out], call.ints) == 0
    assert_same_bits(out, (start + np.arange(n) * step).astype(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (2, 5), (5, 2), (0, 3), (1, 1)])
def test_eye(dtype, shape):
    out = np.empty(shape, dtype)
    call = copying.eye(dtype, *shape)
    assert run(call.source, [out], call.ints) == 0
    assert_same_bits(out, np.eye(*shape, dtype=dtype))


@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("target", DTYPES)
def test_cast(source, target):
    x = special_values(np.random.default_rng(0), (1000,), "float64")
    x = evaluate(lambda v: convert(100 * v, np.dtype(source)), x)
    out = np.empty(1000, target)
    assert run(copying.cast_source(source, target), [x, out], [1000]) == 0
    assert_same_bits(out, evaluate(lambda v: convert(v, np.dtype(target)), x))


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_backwards(dtype):
    x = (10 * np.random.default_rng(0).normal(size=(3, 37))).astype(dtype)
    out = np.zeros_like(x)
    assert run(copying.copy_source(x.dtype), [x, out], list(copying.copy_args((3, 37), 36, (37, -1)))) == 0
    assert_same_bits(out, x[:, ::-1].copy())
    for dims in ((1,), (0,), (0, 1)):
        assert_same_bits(tw.flip(tw.from_numpy(x), dims).numpy(), np.flip(x, dims).copy())
