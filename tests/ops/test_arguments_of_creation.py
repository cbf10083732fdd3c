"""What functions that make tensors take: numbers as tensors, sizes as `Size`, bytes; values are written out."""

import array

import numpy as np
import pytest

import dynamic
import static

engines = pytest.mark.parametrize("tw", [dynamic, static], ids=["dynamic", "static"])


@engines
def test_numbers_of_arange_may_be_tensors(tw):
    def number(x, dtype):
        return tw.tensor(x, dtype=getattr(tw, dtype))

    for args, dtype, wanted in [
        ((number(2.5, "float64"),), tw.float32, [0, 1, 2]),
        ((number(3, "int16"),), tw.int64, [0, 1, 2]),
        ((number(6, "int8"), 10), tw.int64, [6, 7, 8, 9]),
        ((number(3, "uint8"), number(250, "uint8"), 100), tw.int64, [3, 103, 203]),
        ((0, 1, number(0.5, "float32")), tw.float32, [0, 0.5]),
        ((tw.ones(2, 3).sum(),), tw.float32, [0, 1, 2, 3, 4, 5]),
        ((np.float32(2.5),), tw.float32, [0, 1, 2]),
    ]:
        made = tw.arange(*args)
        assert (made.dtype, made.tolist()) == (dtype, wanted)
    assert tw.arange(end=2).tolist() == [0, 1]
    with pytest.raises(TypeError, match="'end' is missing"):
        tw.arange()


@engines
def test_a_size_makes_a_tensor_of_that_size(tw):
    x = tw.ones(2, 3)
    for make in (tw.Tensor, tw.FloatTensor, tw.LongTensor, tw.function(lambda y: tw.Tensor(y.size()) + y)):
        given = x if make not in (tw.Tensor, tw.FloatTensor, tw.LongTensor) else x.size()
        assert make(given).shape == (2, 3)
    assert tw.Tensor(tw.Size([])).shape == ()
    assert tw.Tensor(np.int64(2), 3).shape == tw.Tensor(2, tw.tensor(3)).shape == (2, 3)
    assert tw.Tensor((2, 3)).tolist() == [2, 3]
    for wrong in [(2, -1), (2, 1.5), (True, 2)]:
        with pytest.raises((ValueError, TypeError)):
            tw.Tensor(*wrong)


@engines
def test_bytes_are_the_elements_of_asarray(tw):
    data = bytearray(np.array([1, 2, 3]).tobytes())
    shared = tw.asarray(data, dtype=tw.int64)
    data[0] = 7
    assert shared.tolist() == [7, 2, 3]
    assert tw.asarray(array.array("f", [1.5, 2.5])).tolist() == [1.5, 2.5]
    assert tw.asarray(bytes(4), dtype=tw.uint8, copy=True).tolist() == [0, 0, 0, 0]
    x = tw.arange(3)
    tw.asarray(x.__dlpack__(max_version=(1, 0)))[0] = 5
    assert x.tolist() == [5, 1, 2]


@engines
def test_results_of_nothing_and_of_integers(tw):
    assert tw.block_diag().shape == (1, 0)
    assert tw.cat([tw.empty(0), tw.empty(0)], dim=1).shape == (0,)
    assert tw.repeat_interleave(tw.tensor([0, 1, 2])).tolist() == [1, 2, 2]
    assert tw.full((2,), 1.0, out=tw.empty(2, dtype=tw.int64)).tolist() == [1, 1]
    assert tw.eye(2, out=tw.empty(0, dtype=tw.uint8)).tolist() == [[1, 0], [0, 1]]
    assert tw.linspace(True, 3, 3).tolist() == [1.0, 2.0, 3.0]
    assert tw.linspace(0, 1, 3, out=tw.empty(3, dtype=tw.int64)).tolist() == [0, 0, 1]
    x = tw.ones(2, 3).t()
    assert x.resize_as_(x).stride() == (1, 3)


@engines
def test_lists_may_begin_with_a_number_and_go_on_with_what_requires_a_gradient(tw):
    p = tw.ones(1, requires_grad=True)
    for y in (tw.tensor([0.0, p * p]), tw.tensor([0, p[0]]), tw.Tensor([0.0, p]), tw.as_tensor([np.float32(0), p[0]])):
        assert (y.tolist(), y.dtype, y.requires_grad) == ([0.0, 1.0], tw.float32, False)
    assert tw.tensor([[0.0, p], [p, 2]]).tolist() == [[0.0, 1.0], [1.0, 2.0]]


@engines
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "int64"])
def test_numbers_that_integers_do_not_hold_are_refused(tw, dtype):
    kind = getattr(tw, dtype)
    most = tw.iinfo(kind).max

    def writes(value):
        yield lambda x: x.fill_(value)
        yield lambda x: x.masked_fill_(x > 0, value)
        yield lambda x: x.index_fill_(0, tw.tensor([1]), value)
        yield lambda x: x.__setitem__(0, value)
        yield lambda x: x.__setitem__(x > 0, value)
        yield lambda x: x.scatter(0, tw.tensor([0]), value)
        yield lambda x: tw.nn.functional.pad(x, (1, 0), value=value)
        yield lambda x: tw.nn.functional.threshold(x, 3, value)
        yield lambda x: tw.full_like(x, value)
        yield lambda x: x + tw.tensor([value] * 3, dtype=kind)

    def between(value):
        yield lambda x: x.clamp(max=value)
        yield lambda x: x.clamp(0, value)
        yield lambda x: x.clamp_(value)
        yield lambda x: tw.where(x > 1, x, value)
        yield lambda x: tw.where(x > 1, value, x)

    for value in (most + 1, -most - 2, float(most) * 2.5, float("nan"), float("-inf")):
        for write in (*writes(value), *(between(value) if isinstance(value, int) and dtype != "int64" else ())):
            x = tw.tensor([1, 2, 3], dtype=kind)
            for call in (write, tw.function(lambda x, write=write: write(x))):
                with pytest.raises((RuntimeError, OverflowError)):
                    call(x)
            assert x.tolist() == [1, 2, 3]
    for value in (most, 0, most + 0.0 if dtype in ("uint8", "int8") else 7.9, True):
        for write in (*writes(value), *between(int(value))):
            write(tw.tensor([1, 2, 3], dtype=kind))
    if dtype == "uint8":
        assert tw.zeros(1, dtype=kind).fill_(-1).tolist() == tw.tensor([-1], dtype=kind).tolist() == [255]
    assert tw.tensor(np.array([300]), dtype=tw.uint8).tolist() == [44]  # an array is cast


@engines
def test_lists_have_the_dtype_of_all_that_they_hold(tw):
    double, short = tw.tensor(1.5, dtype=tw.float64), np.int16(2)
    for data, dtype in [
        ([0.0, double], tw.float64), ([0, double], tw.float64), ([double, 0], tw.float64),
        ([[0.0], [double]], tw.float64),
        ([1.5, np.float64(2)], tw.float64), ([1, np.float64(2)], tw.float64), ([np.float32(2), 1], tw.float32),
        ([True, short], tw.int16), ([short, 1], tw.int64), ([1, short], tw.int64), ([short, 1.5], tw.float32),
        ([[1.0, 2.0], tw.ones(2, dtype=tw.float64)], tw.float64), ([short, np.int32(1)], tw.int32),
        ([1, 0.5], tw.float32), ([True, 1], tw.int64), ([True, 0.5], tw.float32),
        ([], tw.float32), ([[], []], tw.float32),
        ([np.array(1.0), 2.0], tw.float64), ((np.ones(2), np.ones(2)), tw.float64), ([True], tw.bool),
        ([tw.tensor(1, dtype=tw.int8), tw.tensor(2, dtype=tw.uint8)], tw.int16),
    ]:  # fmt: skip
        assert tw.tensor(data).dtype == dtype, data
