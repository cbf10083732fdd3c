"""PyTorch's keywords: `dtype`, `alpha`, sizes by name, `requires_grad`, operands of methods; 0-d tensors."""

import numpy as np
import pytest

import dynamic as tw
import static
from common.core.errors import ArgumentError, DTypeError, IndexRangeError, ShapeError

ROWS = np.array([[1.5, 2.0, -3.0], [4.0, 0.5, 6.0]], np.float32)


def both(program, *arrays):
    """The results of eager and compiled runs of a program, after their bits have been compared."""
    eager = program(*map(tw.tensor, arrays)).numpy()
    compiled = np.asarray(static.function(program)(*arrays))
    assert eager.dtype == compiled.dtype
    assert np.asarray(eager).tobytes() == np.asarray(compiled).tobytes()
    return eager


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint8"])
@pytest.mark.parametrize("name", ["sum", "prod", "nansum", "cumsum", "cumprod"])
def test_a_dtype_is_that_of_the_operand_and_of_the_result(name, dtype):
    x = np.array([[200, 100, 3], [1, 2, 3]], np.int64)
    oracle = getattr(np, name)(x.astype(dtype), axis=1, dtype=dtype)
    found = both(lambda x: getattr(tw, name)(x, 1, dtype=dtype), x)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, oracle)
    np.testing.assert_array_equal(getattr(tw.tensor(x), name)(axis=1, dtype=dtype).numpy(), oracle)


@pytest.mark.parametrize("name", ["mean", "nanmean", "softmax", "log_softmax"])
def test_integers_with_a_dtype(name):
    x = np.array([[1, 2, 3]])
    found = both(lambda x: getattr(tw, name)(x, 1, dtype=tw.float64), x)
    np.testing.assert_array_equal(found, both(lambda x: getattr(tw, name)(x, 1), x.astype(np.float64)))


def test_a_dtype_without_ops_is_refused():
    with pytest.raises(DTypeError):
        tw.sum(tw.ones(2), dtype="complex64")


def test_a_gradient_has_the_dtype_of_the_operand():
    x = tw.tensor(ROWS, requires_grad=True)
    x.sum(dtype=tw.float64).backward()
    assert x.grad.dtype == np.float32
    np.testing.assert_array_equal(x.grad.numpy(), np.ones_like(ROWS))


def test_add_and_sub_have_a_factor():
    np.testing.assert_array_equal(both(lambda x: tw.add(x, x, alpha=2), ROWS), ROWS + ROWS * 2)
    np.testing.assert_array_equal(both(lambda x: x.sub(1.0, alpha=0.5), ROWS), ROWS - np.float32(0.5))
    y = tw.tensor(ROWS)
    y.add_(y.clone(), alpha=3)
    np.testing.assert_array_equal(y.numpy(), ROWS * 4)
    a, b = (tw.tensor(ROWS, requires_grad=True) for _ in range(2))
    tw.sub(a, b, alpha=4).sum().backward()
    assert (a.grad.numpy() == 1).all()
    assert (b.grad.numpy() == -4).all()
    with pytest.raises(ArgumentError, match="alpha must not be a floating point number"):
        tw.add(tw.arange(2), tw.arange(2), alpha=0.5)


def test_sizes_and_dimensions_by_name():
    x = tw.tensor(ROWS)
    assert x.reshape(shape=(3, 2)).shape == tw.reshape(x, shape=(3, -1)).shape == (3, 2)
    assert x.permute(dims=(1, 0)).shape == tw.permute(x, dims=[1, 0]).shape == (3, 2)
    assert x.view(size=(6,)).shape == tw.zeros(size=(6,)).shape == tw.rand(size=6).shape == (6,)
    assert x[:1].expand(size=(4, -1)).shape == (4, 3)
    assert tw.broadcast_to(x, (5, -1, -1)).shape == (5, 2, 3)
    with pytest.raises(ArgumentError, match="multiple values"):
        x.reshape(6, shape=(6,))


@pytest.mark.parametrize("name", ["zeros", "ones", "empty", "rand", "randn"])
def test_new_tensors_can_be_leaves(name):
    x = getattr(tw, name)(2, 3, requires_grad=True)
    assert x.is_leaf
    (x * 3).sum().backward()
    assert (x.grad.numpy() == 3).all()
    y = getattr(tw, f"{name}_like")(x, requires_grad=True)
    assert y.is_leaf
    assert y.requires_grad
    assert not getattr(tw, f"{name}_like")(x).requires_grad


def test_integers_are_no_leaves():
    with pytest.raises(DTypeError, match="floating point"):
        tw.arange(3, requires_grad=True)


def test_methods_take_operands_by_name():
    x = tw.tensor(ROWS)
    assert x.lt(other=2.0).tolist() == (ROWS < 2).tolist()
    assert x.lerp(end=x, weight=0.5).tolist() == ROWS.tolist()
    assert x.isclose(other=x).numpy().all()
    assert x.mm(mat2=x.T).shape == (2, 2)
    with pytest.raises(ArgumentError, match="argument 'other' must be Tensor, not float"):
        x.matmul(0.5)


def test_a_number_of_dimension_none_is_a_row_of_one_to_index():
    x = np.float32(7)
    for n in (1, 2):
        index = np.zeros(n, np.int64)
        assert both(lambda x, i: tw.index_fill(x, 0, i, 1.5), x, index) == 1.5
    one, zero = np.zeros(1, np.int64), np.int64(0)
    assert both(lambda x, i: tw.index_add(x, -1, i, x), x, one) == 14
    assert both(lambda x, i: tw.index_copy(x, 0, i, x * 2), x, one) == 14
    assert both(lambda x, i: tw.scatter(x, 0, i, x * 2), x, zero) == 14
    assert both(lambda x, i: tw.scatter_add(x, 0, i, x), x, zero) == 14
    assert both(lambda x, i: tw.gather(x, 0, i), x, np.zeros(3, np.int64)).tolist() == [7, 7, 7]
    assert both(lambda x, i: tw.gather(x, 0, i), ROWS[0], zero) == 1.5
    assert both(lambda x, i: tw.index_select(x, 0, i), x, one) == 7
    assert tw.tensor(x).index_fill_(0, one, 2.0).item() == 2
    with pytest.raises(IndexRangeError):
        tw.index_fill(tw.tensor(x), 0, tw.tensor([1]), 1.5)
    with pytest.raises(IndexRangeError, match="only 1 value"):
        tw.index_select(tw.tensor(x), 0, tw.tensor([0, 0]))


def test_unsigned_integers_become_floats_before_the_maximum_is_taken_off():
    x = np.array([3, 0, 2], np.uint8)
    np.testing.assert_allclose(both(lambda x: tw.logsumexp(x, 0), x), np.log(np.exp([3.0, 0, 2]).sum()), rtol=1e-6)


def test_layer_norm_takes_no_weight_of_another_shape():
    with pytest.raises(ShapeError, match="same shape as normalized_shape"):
        tw.layer_norm(tw.tensor(ROWS), 3, tw.ones(1))
