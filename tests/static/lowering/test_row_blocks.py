"""Elementary functions of a row's own numbers run by vectors, over blocks of sixteen rows."""

from __future__ import annotations

import numpy as np
import pytest

import static as tw
from static.lowering.codegen import row_blocks
from tests.static.compare import assert_compiles

RNG = np.random.default_rng(0)
SHAPES = [(64, 33), (70, 100), (129, 40), (2, 1, 3), (0, 50), (5, 512)]


def focal(x, y):
    chosen = tw.log_softmax(x, 1).gather(1, y[:, None])
    return -((1 - tw.exp(chosen)) ** 2 * chosen).sum()


def listwise(x, y):
    return -(tw.softmax(y, 1) * tw.log_softmax(x, 1)).sum()


def twice(x, y):
    """A logarithm that waits for another one."""
    first = tw.log(tw.exp(x).sum(1))
    return tw.log((tw.exp(x - first[:, None]) + y * y).sum(1)) * first, tw.cos(first)


def behind(x, y):
    """A maximum of what a block's last loop leaves in memory for a row."""
    return tw.log_softmax(x * y, 1).amax(1)


def batches(x, y):
    return tw.log_softmax(x.reshape(3, -1, x.shape[1]) + y[: x.shape[0] // 3], 2)


def rows(shape, dtype=np.float32):
    return RNG.normal(size=shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("program", [listwise, twice, behind])
def test_blocks_give_the_bits_of_rows(program, dtype):
    shapes = [shape for shape in SHAPES if len(shape) == 2]
    compiled = assert_compiles(program, *((rows(shape, dtype), rows(shape, dtype)) for shape in shapes))
    assert "in range(m0, m1)" in compiled.source
    assert "log(vt" in compiled.source


@pytest.mark.parametrize("program", [focal, listwise])
def test_gradients_and_memory_for_a_row(program):
    def gradient(x, y):
        return tw.grad(program)(x, y)

    given = [(rows((n, 40)), RNG.integers(0, 40, n) if program is focal else rows((n, 40))) for n in (1, 70, 64)]
    compiled = assert_compiles(gradient, *given)
    assert ("g + c" in compiled.source) == (program is listwise)
    assert "log(vt" in compiled.source


def test_a_loop_before_the_first_vector_may_have_nothing_to_do(monkeypatch):
    """The gradient of a mean divides a number that all rows share, before any loop."""
    monkeypatch.setattr(row_blocks, "LEAST", 1)

    def gradient(x, m):
        return tw.grad(lambda x, m: (m - (m - x)).mean(1, keepdim=True).sum(), argnums=(0, 1))(x, m)

    compiled = assert_compiles(gradient, (rows((70, 40)), rows((70, 1))))
    assert "in range(m0, m1)" in compiled.source


def test_rows_of_batches():
    compiled = assert_compiles(batches, *((rows((n, 64)), rows((n, 64))) for n in (3 * 64, 3 * 67)))
    assert "log(vt" in compiled.source


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [9, 16, 20])
def test_short_rows_of_small_matrices(columns, dtype):
    """Too few behind each other to be written out, but many: a hyperbolic tangent per row goes by vectors."""

    def program(a, x):
        return tw.tanh((a * x[:, None]).sum(-1))

    given = [
        (rows((n, m, columns), dtype), rows((n, columns), dtype)) for n, m in ((40, 20), (3, 16), (5, 7), (2, 300))
    ]
    compiled = assert_compiles(program, *given)
    assert "tanh(vt" in compiled.source


def test_blocks_on_threads():
    x, y = rows((4000, 100)), rows((4000, 100))
    compiled = tw.function(tw.grad(listwise))
    expected = compiled(x, y).numpy().copy()
    tw.set_num_threads(2)
    try:
        assert (tw.function(tw.grad(listwise))(x, y).numpy() == expected).all()
    finally:
        tw.set_num_threads(1)


def test_a_wrong_index_in_a_block():
    compiled = tw.function(focal)
    x, y = rows((70, 40)), RNG.integers(0, 40, 70)
    compiled(x, y)
    y[66] = 40
    with pytest.raises(IndexError, match=r"40|range|bounds"):
        compiled(x, y)


@pytest.mark.parametrize("shape", [(40, 100), (1000, 32), (100, 600)])
def test_few_or_short_or_long_rows_stay_rows(shape):
    compiled = assert_compiles(listwise, (rows(shape), rows(shape)))
    assert "h = r0 - m0" not in compiled.source
