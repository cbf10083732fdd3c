"""argmax, argmin, and max and min over a dimension, against the definition in plain numpy."""

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import DTypeError, ShapeError
from common.kernels.arrays.arg_extremes import position_oracle
from tests.helpers.proofs import rotated

DTYPES = ["float32", "float64", "int64", "int8", "bool"]
FORMS = [(name, columns) for name in ("max", "min") for columns in (1, 2, 5, 8, 9, 31, 33, 1025)]


@pytest.mark.parametrize(("form", "dtype"), rotated(FORMS, DTYPES))
def test_positions_are_those_of_the_definition(form, dtype):
    name, columns = form
    rng = np.random.default_rng(columns)
    x = rng.integers(-3, 4, (40, columns)).astype(dtype)
    if x.dtype.kind == "f":
        x[::3][rng.random(x[::3].shape) < 0.1] = np.nan
        x[::2][rng.random(x[::2].shape) < 0.5] = -0.0
        x[rng.random(x.shape) < 0.02] = np.inf
    expected = position_oracle(x, name)
    columns_first = np.ascontiguousarray(x.T)
    if dtype == "bool":  # as in PyTorch, which has max(dim) of bools
        with pytest.raises(DTypeError, match=f"arg{name}. not implemented for bool"):
            getattr(static, f"arg{name}")(x, 1)
    else:
        assert np.array_equal(getattr(static, f"arg{name}")(columns_first, 0), expected)
        middle = getattr(dynamic, f"arg{name}")(np.stack([columns_first] * 2), 1).numpy()
        assert np.array_equal(middle, np.stack([expected] * 2))
        assert np.array_equal(getattr(static, f"arg{name}")(x, 1), expected)
        assert np.array_equal(getattr(dynamic, f"arg{name}")(x, -1).numpy(), expected)
    compiled = static.function(lambda x: tuple(getattr(x, name)(1)))
    values, indices = map(np.asarray, compiled(x))
    assert np.array_equal(indices, expected)
    rows = np.arange(len(x))
    assert values.tobytes() == np.asarray(x[rows, expected]).tobytes()
    if x.dtype.kind == "f":  # amax and max(dim) give the same bits: +0 above -0
        assert np.array_equal(np.asarray(getattr(static, f"a{name}")(x, 1)).view(f"i{x.itemsize}") * (values == values),
                              values.view(f"i{x.itemsize}") * (values == values))  # fmt: skip


def test_what_is_compiled_for_a_few_columns_serves_any_number():
    rng = np.random.default_rng(0)
    compiled = static.function(lambda x: (static.argmax(x, 1), static.argmin(x, 1)))
    for columns in (5, 2, 6, 8, 40, 1025, 5):
        x = rng.integers(-3, 4, (50, columns)).astype(np.float32)
        for found, name in zip(compiled(x), ("max", "min"), strict=True):
            assert np.array_equal(found, position_oracle(x, name))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("columns", [511, 513, 1600])
def test_the_first_of_the_parts_of_a_row(columns, dtype):
    """Long rows are searched part by part; a later part with the same extreme does not win."""
    x = (1000 * np.random.default_rng(columns).standard_normal((40, columns))).astype(dtype)
    x[1::4, [3, columns // 2, columns - 1]] = 9999
    x[2::4, [columns // 3, columns - 2]] = -9999
    for name in ("max", "min"):
        expected = position_oracle(x, name)
        assert np.array_equal(getattr(dynamic, f"arg{name}")(x, 1).numpy(), expected)
        assert np.array_equal(getattr(static, f"arg{name}")(x, 1), expected)


def test_gradient_of_max_goes_to_the_index():
    x = dynamic.tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 1.0]], requires_grad=True)
    values, indices = x.max(dim=1)
    (values * dynamic.tensor([5.0, 7.0])).sum().backward()
    assert indices.tolist() == [1, 0]
    assert x.grad.tolist() == [[0, 5, 0], [7, 0, 0]]


def test_three_forms_of_max():
    x, y = dynamic.tensor([1.0, 4.0]), dynamic.tensor([2.0, 3.0])
    assert dynamic.max(x).item() == 4
    assert dynamic.max(x, y).tolist() == [2, 4]
    assert dynamic.min(x, 0).indices.item() == 0
    assert x.argmax(keepdim=True).tolist() == [1]
    assert dynamic.tensor(3.0).max(0).values.item() == 3


def test_no_extreme_of_nothing():
    with pytest.raises(ShapeError, match="size 0"):
        dynamic.argmax(np.zeros((3, 0), np.float32), 1)
    assert dynamic.argmax(np.zeros((0, 3), np.float32), 1).shape == (0,)
