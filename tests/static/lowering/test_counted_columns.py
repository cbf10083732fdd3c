"""Rows of a few elements, one vector each, and reductions over a dimension before them."""

from __future__ import annotations

import numpy as np
import pytest

import static as tw
from tests.static.compare import assert_compiles
from tests.static.lowering.test_indexed import floats

SHAPES = [(300, 3, 3), (300, 2, 5), (40, 9, 7), (20, 20, 6), (12, 17, 12), (20, 4, 33)]


def scaled(x, rows, columns):
    return x * columns + rows, tw.exp(x * columns)


def reduced(x, rows, columns):
    e = tw.exp(x - tw.amax(x, 1, True))
    return e, e.sum(1), tw.amin(x * columns, 1), tw.softmax(x, 1)


def gradient(program):
    def computed(x, rows, columns):
        return tw.grad(lambda *t: sum((y * y).sum() for y in program(*t)), argnums=(0, 2))(x, rows, columns)

    return computed


@pytest.mark.parametrize("program", [scaled, reduced])
@pytest.mark.parametrize("shape", SHAPES)
def test_few_columns(program, shape):
    dtype = np.float64 if shape[1] % 2 else np.float32
    cases = []
    for batch, n, c in (shape, (3, *shape[1:]), (shape[0], shape[1], shape[2] + 1), (shape[0], shape[1] + 1, shape[2])):
        cases.append(tuple(floats(*s).astype(dtype) for s in ((batch, n, c), (batch, n, 1), (batch, 1, c))))
    assert_compiles(program, *cases)
    assert_compiles(gradient(program), *cases)


def test_their_number_stands_in_the_text():
    x, rows, columns = floats(40, 12, 10), floats(40, 12, 1), floats(40, 1, 10)
    compiled = assert_compiles(lambda *t: scaled(*t)[0], (x, rows, columns))
    np.testing.assert_array_equal(compiled(x, rows, columns), x * columns + rows)
    assert "== 10:" in compiled.source


def test_sums_over_few_rows_of_few_columns():
    x, w = floats(300, 4), floats(6, 4, 4)
    compiled = assert_compiles(lambda x, w: (x[:, None, :, None] * w).sum(2), (x, w))
    np.testing.assert_allclose(compiled(x, w), np.einsum("ni,oij->noj", x, w), rtol=1e-5, atol=1e-5)
    assert "fold_lanes" not in compiled.source.partition("return 0")[0]
