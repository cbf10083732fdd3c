"""Distinct elements against numpy, in the eager engine and outside traces."""

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import IndexRangeError, TraceError
from tests.bits import assert_all_same_bits


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
@pytest.mark.parametrize("shape", [(0,), (1,), (200,), (5, 40), ()])
def test_distinct_elements_are_numpys(shape, dtype):
    x = np.asarray(np.random.default_rng(0).integers(-3, 4, shape)).astype(dtype)
    expected = np.unique(x, return_inverse=True, return_counts=True)
    for found in (static.unique(x, True, True, True), dynamic.unique(x, return_inverse=True, return_counts=True)):
        for ours, theirs in zip(found, expected, strict=True):
            assert np.array_equal(np.asarray(ours), theirs.reshape(np.asarray(ours).shape))
        assert found[1].shape == x.shape


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_distinct_slices_are_numpys(dim):
    x = np.random.default_rng(1).integers(0, 2, (7, 3, 2)).astype(np.float32)
    ours = dynamic.unique(x, return_inverse=True, return_counts=True, dim=dim)
    expected = np.unique(x, return_inverse=True, return_counts=True, axis=dim)
    for a, b in zip(ours, expected, strict=True):
        assert np.array_equal(a.numpy(), b.reshape(a.shape))


def test_nan_and_zeros():
    x = np.array([np.nan, -0.0, 1.0, 0.0, np.nan], np.float32)
    values, counts = static.unique(x, return_counts=True)
    assert [str(v) for v in values.tolist()] == ["-0.0", "1.0", "nan", "nan"]
    assert counts.tolist() == [2, 1, 1, 1]


def test_runs():
    x = dynamic.tensor([[1, 1, 2, 2, 2, 1], [1, 1, 2, 2, 0, 1]])
    values, inverse, counts = dynamic.unique_consecutive(x, True, True, dim=1)
    assert values.tolist() == [[1, 2, 2, 1], [1, 2, 0, 1]]
    assert inverse.tolist() == [0, 0, 1, 1, 2, 3]
    assert counts.tolist() == [2, 2, 1, 1]
    assert dynamic.unique_consecutive(x).tolist() == [1, 2, 1, 2, 0, 1]


def test_gradient_goes_to_the_first_of_equals():
    x = dynamic.tensor([2.0, 1.0, 2.0], requires_grad=True)
    (x.unique() * dynamic.tensor([3.0, 5.0])).sum().backward()
    assert x.grad.tolist() == [5, 3, 0]


@pytest.mark.parametrize("name", ["unique", "unique_consecutive"])
def test_a_trace_has_fixed_sizes(name):
    with pytest.raises(TraceError, match=rf"{name}\(\): the size of the result depends on the data"):
        static.function(lambda x: getattr(static, name)(x))(np.ones(3, np.float32))
    with pytest.raises(IndexRangeError, match=rf"{name}\(\)"):
        getattr(dynamic, name)(np.ones(3, np.float32), dim=2)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "int16", "int8", "uint8", "bool"])
@pytest.mark.parametrize("n", [0, 1, 2, 300])
def test_runs_of_elements_one_by_one(n, dtype):
    rng = np.random.default_rng(n)
    x = rng.integers(0, 2, 2 * n).astype(dtype)
    if x.dtype.kind == "f":
        x[rng.random(2 * n) < 0.2] = np.nan
        x[rng.random(2 * n) < 0.3] = -0.0
    for each, given in ((x[:n], dynamic.tensor(x[:n])), (x[::2], dynamic.tensor(x)[::2])):
        values, number, lengths = [], [], []
        for i in range(n):
            if i == 0 or each[i] != each[i - 1]:
                values.append(each[i])
                lengths.append(0)
            lengths[-1] += 1
            number.append(len(values) - 1)
        expected = [np.array(values, dtype), np.array(number, np.int64), np.array(lengths, np.int64)]
        found = dynamic.unique_consecutive(given, True, True)
        assert_all_same_bits(found, expected, f"{n} {dtype}")
        assert_all_same_bits([dynamic.unique_consecutive(given)], expected[:1], f"{n} {dtype}")
