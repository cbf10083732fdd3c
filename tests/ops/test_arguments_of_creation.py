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
