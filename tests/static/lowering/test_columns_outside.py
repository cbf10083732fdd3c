"""Several elementary functions of rows of a few elements: a loop over columns around one over rows, with eager bits."""

import numpy as np
import pytest

import dynamic
import static
from tests.bits import assert_all_same_bits


def blend(tw):
    def call(x, y, m, g):
        a, b = (tw.abs(x) + 0.5) ** g, (tw.abs(y) + 0.25) ** g
        m = m[:, None]
        return (a * m + b * (1 - m)) ** (1 / g), tw.exp(-a)

    return tw.function(call)


def whitened(tw):
    """The first column of a product is read by all columns of what may lie in its memory."""

    def call(x, w):
        z = x @ w
        return (tw.exp(-tw.tanh(z) * z[:, :1]) + tw.log(tw.abs(z) + 1)) @ w

    return tw.function(call)


def of_parts(tw):
    """Results are parts of a larger array."""

    def call(x, w, s):
        z = tw.exp(tw.tanh(x * w)) * tw.sigmoid(s[:, None] - x)
        return tw.cat([x, z], 1), z.sum()

    return tw.function(call)


def arrays(*shapes, dtype):
    rng = np.random.default_rng(sum(map(sum, shapes)))
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [2, 3, 5, 7])
def test_columns_have_eager_bits(columns, dtype):
    compiled, parts, product = blend(static), of_parts(static), whitened(static)
    for n, k in ((40, columns), (4, columns), (511, columns), (1030, columns), (33, columns + 1), (0, columns)):
        x, y, m = arrays((n, k), (n, k), (n,), dtype=dtype)
        g = np.asarray(1.7, dtype)
        assert_all_same_bits(compiled(x, y, m, g), blend(dynamic)(x, y, m, g), f"blend {n, k}")
        w, square = arrays((k,), (k, k), dtype=dtype)
        assert_all_same_bits(parts(x, w, m), of_parts(dynamic)(x, w, m), f"parts {n, k}")
        assert_all_same_bits([product(x, square)], [whitened(dynamic)(x, square)], f"product {n, k}")
    assert f"for r0 in range({columns}):" in compiled.source


def test_little_is_written_out():
    """One pass over the rows reads each of them once."""
    x, y = arrays((600, 3), (600,), dtype=np.float32)
    compiled = static.function(lambda x, y: static.exp(x * y[:, None]) + static.tanh(x))
    assert_all_same_bits([compiled(x, y)], [dynamic.exp(dynamic.tensor(x) * y[:, None]) + dynamic.tanh(x)], "two")
    assert "for r0 in range(3):" not in compiled.source
