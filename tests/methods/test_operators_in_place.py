"""Python's augmented operators, deletion, reversal and functions for each element."""

import copy

import numpy as np
import pytest

import dynamic
import static
from tests.bits import assert_all_same_bits

ENGINES = pytest.mark.parametrize("tw", [dynamic, static])


class Reflecting:
    def __radd__(self, other):
        return "added"

    def __rpow__(self, other):
        return "raised"


@ENGINES
def test_a_power_is_written_where_the_tensor_lies(tw):
    x = tw.tensor([2.0, 3.0])
    y = view = x[:1]
    view **= 2
    assert view is y
    assert x.tolist() == [4.0, 3.0]
    w = tw.ones(2, requires_grad=True)
    z = w * 3
    z **= 3
    z.sum().backward()
    assert w.grad.tolist() == [81.0, 81.0]
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        w **= 2


def test_a_compiled_power_writes_its_argument():
    def step(x):
        y = x
        y **= 2
        return x + 1

    results = []
    for tw in (dynamic, static):
        x = tw.tensor([0.1, 3.0])
        results.append([tw.function(step)(x).numpy(), x.numpy()])
    assert_all_same_bits(*results, "**=")
    np.testing.assert_allclose(results[0][1], [0.01, 9.0], rtol=1e-6)


@ENGINES
def test_unknown_operands_of_augmented_operators_have_their_turn(tw):
    x = tw.ones(2)
    x += Reflecting()
    assert x == "added"
    x = tw.ones(2)
    x **= Reflecting()
    assert x == "raised"
    x = tw.ones(2)
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for -=: 'Tensor' and 'Reflecting'"):
        x -= Reflecting()
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \*=: 'Tensor' and 'NoneType'.*is needed"):
        x *= None
    x += np.float32(2)
    x -= np.ones(2, np.float32)
    assert x.tolist() == [2.0, 2.0]


@ENGINES
def test_items_are_reversed_and_not_deleted(tw):
    x = tw.arange(6).reshape(2, 3)
    assert reversed(x).tolist() == [[3, 4, 5], [0, 1, 2]]
    assert reversed(tw.tensor(3)).item() == 3
    with pytest.raises(TypeError, match="does not support deleting items"):
        del x[0]


@ENGINES
def test_functions_of_python_are_applied_to_each_element(tw):
    x = tw.arange(6).reshape(2, 3)
    assert x.apply_(lambda a: a * a) is x
    assert x.tolist() == [[0, 1, 4], [9, 16, 25]]
    assert x.t().map_(tw.tensor([[10], [20], [30]]), lambda a, b: a + b).tolist() == [[10, 19], [21, 36], [34, 55]]
    assert x.tolist() == [[10, 21, 34], [19, 36, 55]]
    assert tw.ones(2).map2_(tw.tensor([1.0, 2.0]), tw.tensor(3.0), lambda a, b, c: a + b * c).tolist() == [4.0, 7.0]
    assert tw.zeros(0).apply_(abs).shape == (0,)
    assert tw.tensor(2.5).apply_(int).item() == 2.0
    with pytest.raises(RuntimeError, match=r"Can't call apply_\(\) on Variable that requires grad"):
        tw.ones(1, requires_grad=True).apply_(abs)
    with pytest.raises(RuntimeError, match="does not expand"):
        tw.ones(2).map_(tw.ones(3), max)
    with pytest.raises(TypeError, match="must be a function"):
        tw.ones(2).apply_(3)
    with pytest.raises(TypeError):
        static.function(lambda x: x.apply_(abs))(x)


@ENGINES
def test_a_tuple_is_data_of_a_new_tensor(tw):
    x = tw.zeros(2, 3)
    assert x.new((3, 4)).tolist() == [3.0, 4.0]
    assert x.new(x.shape).shape == x.new(*x.shape).shape == (2, 3)
    assert tw.function(lambda x: x.new(x.size()) + x)(x).shape == (2, 3)


@ENGINES
def test_the_state_of_a_generator_is_a_tensor(tw):
    for state, draw, put in (
        (tw.get_rng_state(), tw.rand, tw.set_rng_state),
        ((generator := tw.Generator(3)).get_state(), lambda n: tw.rand(n, generator=generator), generator.set_state),
    ):
        kept = copy.deepcopy(state.clone().cpu())
        first = draw(3)
        put(kept)
        assert first.tolist() == draw(3).tolist()


@ENGINES
def test_small_ints_without_dimensions_are_indices(tw):
    x = tw.arange(6).reshape(2, 3)
    for dtype in (tw.int8, tw.int16):
        one = tw.tensor(1, dtype=dtype)
        assert x[one].tolist() == [3, 4, 5]
        assert x[one, one].item() == 4
    for key in (tw.tensor([1.0]), tw.tensor([1], dtype=tw.int8), ([0, 1], [0, 1, 2])):
        with pytest.raises(IndexError, match=r"used as indices must be|indexing tensors could not be broadcast"):
            x[key]


@ENGINES
def test_numbers_are_among_elements(tw):
    x = tw.tensor([[0, 1], [1, 3]])
    assert tw.isin(x, 1).tolist() == [[False, True], [True, False]]
    assert tw.isin(x, 1, invert=True).tolist() == [[True, False], [False, True]]
    assert tw.isin(3, x).item() is True
    assert tw.isin(2.5, x).item() is False


@ENGINES
def test_conditions_are_checked(tw):
    tw._check(True)
    tw._check_is_size(3)
    for check, error in [
        (tw._check, RuntimeError), (tw._check_index, IndexError), (tw._check_value, ValueError),
        (tw._check_type, TypeError), (tw._check_not_implemented, NotImplementedError),
        (tw._check_is_size, RuntimeError),
    ]:  # fmt: skip
        with pytest.raises(error, match="of this kind"):
            check(-1 if check is tw._check_is_size else False, lambda: "of this kind")
        if check is not tw._check_is_size:
            with pytest.raises(error, match="Expected cond to be True"):
                check(False)
    with pytest.raises(TypeError, match="cond must be a bool"):
        tw._check(tw.tensor(True))


@ENGINES
def test_the_median_of_nothing(tw):
    for median in (tw.median, tw.nanmedian):
        x = tw.zeros(0, 3, requires_grad=True)
        y = median(x)
        y.backward()
        assert np.isnan(y.item())
        assert x.grad.shape == (0, 3)
        assert median(tw.zeros(0, dtype=tw.int32)).item() == -(2**31)
        with pytest.raises(IndexError, match="Expected reduction dim 1 to have non-zero size"):
            median(tw.zeros(2, 0), 1)
    with pytest.raises(IndexError, match="Expected reduction dim 1 to have non-zero size"):
        tw.kthvalue(tw.zeros(2, 0), 1, 1)
