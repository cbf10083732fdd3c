"""Products of vectors and large parts of matrices, which the eager engine reads where they lie."""

import numpy as np
import pytest

import dynamic
from common.evaluate import kinds
from tests.bits import assert_same_bits
from tests.helpers.wrapped import wrap

PARTS = {
    "columns": (lambda x: x[:, :-1], True),
    "later columns": (lambda x: x[:, 3:], True),
    "every other row": (lambda x: x[::2], True),
    "rows and columns": (lambda x: x[1::3, 2:-1], True),
    "turned columns": (lambda x: x[:, 1:].t(), True),
    "turned rows": (lambda x: x[::2].t(), True),
    "every other column": (lambda x: x[:, ::2], False),
    "repeated": (lambda x: x[:1].expand(7, x.shape[1]), False),
    "overlapping": (lambda x: x.as_strided((300, 100), (2, 1)), False),
    "of another array": (lambda x: x[:, None].expand(x.shape[0], 2, x.shape[1])[:, 1, 2:], True),
}


@pytest.fixture
def seen(monkeypatch):
    """Whether each product of a matrix in another order read it where it lies."""
    found, own = [], kinds._of_rows_apart
    monkeypatch.setattr(kinds, "_of_rows_apart", lambda *given: (found.append(own(*given)), found[-1])[1])
    return found


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(300, 230), (19, 4100), (4100, 19)])
@pytest.mark.parametrize("name", PARTS)
def test_bits_are_those_of_a_copy(name, shape, dtype, seen):
    part, read = PARTS[name]
    rng = np.random.default_rng(shape[0])
    whole = wrap(rng.normal(size=shape).astype(dtype))
    x = part(whole)
    v, u = (rng.normal(size=2 * n).astype(dtype) for n in x.shape[::-1])
    v[0], u[1] = -0.0, np.inf
    for right, left in ((wrap(v)[: x.shape[1]], wrap(u)[: x.shape[0]]), (wrap(v)[::2], wrap(u)[::2])):
        copy = wrap(np.ascontiguousarray(x.numpy()))
        wanted = copy.mv(right.clone()).numpy(), (left.clone() @ copy).numpy()
        assert_same_bits(x.mv(right), wanted[0], name)
        assert_same_bits(x @ right, wanted[0], name)
        assert_same_bits(left @ x, wanted[1], name)
        assert_same_bits(dynamic.mm(left.unsqueeze(0), x), wanted[1][None], name)
    assert any(way is not None for way in seen) == read


def test_products_of_numbers_and_matrices_are_as_before():
    """Inner sizes of 1 and 0, single rows, and ints have kernels of their own."""
    x = wrap(np.arange(24.0, dtype=np.float32).reshape(4, 6))
    assert x[:, :1].mv(wrap(np.ones(1, np.float32))).tolist() == [0, 6, 12, 18]
    assert x[:, :0].mv(wrap(np.ones(0, np.float32))).tolist() == [0] * 4
    assert (x[:1, :5] @ wrap(np.ones(5, np.float32))).tolist() == [10]
    assert (x[:0, :5] @ wrap(np.ones(5, np.float32))).tolist() == []
    whole = x.to(dynamic.int64)
    assert whole[:, 1:].mv(wrap(np.ones(5, np.int64))).tolist() == [15, 45, 75, 105]
