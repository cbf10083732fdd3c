"""Reductions of few elements of each column: written out, with one loop over the columns."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic
import static as tw
from static.lowering.codegen.short_columns import FEWEST_ELEMENTS
from tests.bits import assert_all_same_bits
from tests.static.compare import assert_compiles
from tests.static.lowering.test_indexed import floats


def best(a, transitions):
    """The best of few states before each state, and a sum over these."""
    reached = a[:, :, None] + transitions[None]
    return tw.amax(reached, 1), (reached * reached).sum(1)


def total(a, transitions):
    """The same with an exponential of each element, and with the elements themselves as a result."""
    reached = a[:, :, None] + transitions
    return tw.logsumexp(reached, 1), reached


def gradient(program):
    def computed(a, transitions):
        return tw.grad(lambda a, t: sum((y * y).sum() for y in program(a, t)), argnums=(0, 1))(a, transitions)

    return computed


@pytest.mark.parametrize("program", [best, total])
@pytest.mark.parametrize(("states", "columns"), [(2, 8), (3, 31), (9, 9), (12, 33), (16, 16), (17, 8), (32, 40)])
def test_few_states(program, states, columns):
    dtype, many = np.float64 if states % 2 else np.float32, FEWEST_ELEMENTS // (states * columns) + 1
    inputs = [
        (floats(batch, s).astype(dtype), floats(s, c).astype(dtype))
        for batch, s, c in ((many, states, columns), (1, states, columns), (5, states + 1, columns), (5, states, 7))
    ]
    assert_compiles(program, *inputs)
    assert_compiles(gradient(program), *inputs)


def test_the_states_are_written_out():
    a, transitions = floats(50, 9), floats(9, 9)
    compiled = assert_compiles(lambda a, t: best(a, t)[0], (a, transitions))
    np.testing.assert_array_equal(compiled(a, transitions), (a[:, :, None] + transitions).max(1))
    assert "== 9:" in compiled.source


def bags(engine, table, weights, index):
    """Sums, maxima and weighted means of rows of a table, and of elements of which each has an index of its own."""
    rows = table[index]
    own = engine.take_along_dim(rows, index[..., None] % rows.shape[1], 1)
    return (
        rows.sum(1),
        (rows * rows).sum(1),
        rows.amax(1),
        (engine.tanh(rows) * weights[index][..., None]).mean(1),
        own.sum(1),
    )


@pytest.mark.parametrize(("many", "columns"), [(2, 8), (3, 31), (10, 8), (10, 33), (17, 16), (32, 4)])
def test_rows_of_a_table_are_summed_without_an_array_of_them(many, columns):
    dtype = np.float64 if many % 2 else np.float32
    table, weights = floats(50, columns).astype(dtype), floats(50).astype(dtype)
    table[3] = -0.0
    compiled = tw.function(lambda *xs: bags(tw, *xs))
    slopes = [
        engine.grad(lambda t, w, i, engine=engine: sum((y * y).sum() for y in bags(engine, t, w, i)), argnums=(0, 1))
        for engine in (tw, dynamic)
    ]
    derivatives = tw.function(slopes[0])
    for count, each in ((FEWEST_ELEMENTS // columns + 1, many), (1, many), (5, many + 1), (7, 1)):
        xs = table, weights, np.random.default_rng(count).integers(-50, 50, (count, each))
        given = [dynamic.tensor(x) for x in xs]
        assert_all_same_bits(list(compiled(*xs)), [x.numpy() for x in bags(dynamic, *given)], "sums")
        assert_all_same_bits(list(derivatives(*xs)), [x.numpy() for x in slopes[1](*given)], "slopes")
    index = np.full((FEWEST_ELEMENTS, many), 3)
    summed = tw.function(lambda table, index: table[index].sum(1))
    expected = dynamic.tensor(np.repeat(table[3:4], many, 0)).sum(0).numpy()
    assert_all_same_bits([summed(table, index)], [np.tile(expected, (len(index), 1))], "one row")
    assert f"== {many}" in summed.source
    index[-1, -1] = 50
    with pytest.raises(IndexError, match="index 50 is out of bounds"):
        summed(table, index)


def test_zeros_of_both_signs_infinities_and_nan():
    a = floats(FEWEST_ELEMENTS // 30 + 1, 3)
    a[0], a[1, 1], a[2, 0], a[3, 2] = -0.0, np.inf, -np.inf, np.nan
    zeros = np.zeros((3, 10), np.float32)
    assert_compiles(best, (a, -zeros), (a, zeros))
    assert_compiles(total, (a, -zeros))
