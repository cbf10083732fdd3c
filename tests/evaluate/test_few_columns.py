"""Operands that repeat along rows of few elements: numpy's elements, whether a row is written out or not."""

import numpy as np
import pytest

import dynamic as tw
from common.evaluate import kernels as eager_kernels
from tests.helpers.proofs import each

#: Shapes of two operands of r rows, or b blocks of them, of c columns.
PAIRS = {
    "a number per row": lambda b, r, c: ((r, c), (r, 1)),
    "a number per column": lambda b, r, c: ((r, c), (c,)),
    "rows against columns": lambda b, r, c: ((r, 1), (c,)),
    "rows of each block": lambda b, r, c: ((b, r, c), (b, 1, c)),
    "pairs of rows": lambda b, r, c: ((b, 1, c), (1, r, c)),
    "a number per place": lambda b, r, c: ((b, r, c), (r, 1)),
    "a number per block": lambda b, r, c: ((b, 1, 1), (r, c)),
    "places against rows": lambda b, r, c: ((b, 1, c), (r, 1)),
}
ROWS = (15, 16, 17, 40, 129)


def drawn(shape, dtype, seed):
    return (9 * np.random.default_rng(seed).standard_normal(shape)).astype(dtype)


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
@each("columns", [2, 3, 5, 8, 11, 37])
def test_elements(columns, pair):
    dtype = ("float32", "float64", "int64", "int8")[(columns + len(pair(1, 1, 1)[0])) % 4]
    for rows in ROWS:
        x, z = [drawn(shape, dtype, i) for i, shape in enumerate(pair(3, rows, columns))]
        a, b = tw.tensor(x), tw.tensor(z)
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal((a - b).numpy(), x - z)
        np.testing.assert_array_equal(tw.where(a > 0, b, a).numpy(), np.where(x > 0, z, x))


@pytest.mark.parametrize("columns", [2, 3])
def test_three_operands_of_blocks(columns):
    shapes = [(3, 40, 1), (3, 40, columns), (3, 1, columns), (3, 1, 1), (40, columns), (40, 1)]
    x = [drawn(shape, "float32", i) for i, shape in enumerate(shapes)]
    t = [tw.tensor(v) for v in x]
    for i, j, k in ((0, 1, 2), (3, 4, 5), (3, 0, 2), (5, 2, 0)):
        np.testing.assert_array_equal(tw.where(t[i] > 0, t[j], t[k]).numpy(), np.where(x[i] > 0, x[j], x[k]))


@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
@each("columns", [2, 3, 4])
def test_operands_apart(columns, pair, dtype):
    """Operands between others, and backwards."""
    shapes = pair(3, 40, columns)
    x, z = [drawn(tuple(2 * n for n in shape), dtype, i) for i, shape in enumerate(shapes)]
    for part in (slice(1, None, 2), slice(None, None, -2)):
        p, q = [a[tuple(part if n > 2 else slice(1) for n in a.shape)] for a in (x, z)]
        np.testing.assert_array_equal((tw.from_numpy(p.copy()) + tw.from_numpy(q.copy())).numpy(), p + q)
        got = tw.tensor(x)[tuple(slice(1, None, 2) if n > 2 else slice(1) for n in x.shape)] * tw.tensor(q.copy())
        want = x[tuple(slice(1, None, 2) if n > 2 else slice(1) for n in x.shape)] * q
        np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.parametrize(
    "pair", ["a number per row", "a number per column", "rows of each block", "a number per place"]
)
@pytest.mark.parametrize("columns", [3, 11, 37])
def test_results_in_the_place_of_an_operand(columns, pair):
    """One op, and a line of several; where a row's end is written twice, it would be computed twice here."""
    x, z = [drawn(shape, "float32", i) for i, shape in enumerate(PAIRS[pair](3, 40, columns))]
    a, b = tw.tensor(x), tw.tensor(z)
    for _ in range(30):  # the line is made one kernel after some
        a.copy_(tw.tensor(x))
        a -= b
        np.testing.assert_array_equal(a.numpy(), x - z)
        a *= b
        a += 3
        np.testing.assert_array_equal(a.numpy(), (x - z) * z + 3)


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
@each("columns", [2, 3, 5])
def test_gradients(columns, pair):
    """Of a chain of ops; each gradient is a product, summed over where the operand repeats."""
    shapes = pair(3, 40, columns)
    x, z = [drawn(shape, np.int64, i).astype(np.float64) for i, shape in enumerate(shapes)]
    a, b = [tw.tensor(v, requires_grad=True) for v in (x, z)]
    ((a * b + a) * 2).sum().backward()
    full = np.broadcast_shapes(*shapes)
    for leaf, grad in ((a, 2 * z + 2), (b, 2 * x)):
        whole = np.broadcast_to(grad, full)
        missing = len(full) - leaf.ndim
        dims = tuple(d for d in range(len(full)) if d < missing or leaf.shape[d - missing] == 1 != full[d])
        np.testing.assert_array_equal(leaf.grad.numpy(), whole.sum(dims).reshape(leaf.shape))


def test_threads_share_the_rows():
    x, z = drawn((400_000, 3), "float32", 1), drawn((3,), "float32", 2)
    y = drawn((5, 100_000, 3), "float32", 3)
    tw.set_num_threads(2)
    try:
        np.testing.assert_array_equal((tw.tensor(x) * tw.tensor(z)).numpy(), x * z)
        np.testing.assert_array_equal((tw.tensor(x) * tw.tensor(x[:, :1])).numpy(), x * x[:, :1])
        np.testing.assert_array_equal((tw.tensor(y) * tw.tensor(y[:, :1])).numpy(), y * y[:, :1])
    finally:
        tw.set_num_threads(1)


def test_which_rows_are_written_out():
    short = eager_kernels.short_columns
    assert [short(["add"], "fr", (16, c)) for c in (1, 2, 8, 9)] == [0, 2, 8, 0]
    assert [short(["add"], "fm", (100, 3, rows)) for rows in (15, 16)] == [0, 3]
    assert short(["add"], "fs", (16, 3)) == short(["add", "exp"], "fr", (16, 3)) == short(["add"], "fr", (9, 3)) == 0
