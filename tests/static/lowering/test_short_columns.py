"""Reductions of few elements of each column: written out, with one loop over the columns."""

from __future__ import annotations

import numpy as np
import pytest

import static as tw
from static.lowering.codegen.short_columns import FEWEST_ELEMENTS
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


def test_zeros_of_both_signs_infinities_and_nan():
    a = floats(FEWEST_ELEMENTS // 30 + 1, 3)
    a[0], a[1, 1], a[2, 0], a[3, 2] = -0.0, np.inf, -np.inf, np.nan
    zeros = np.zeros((3, 10), np.float32)
    assert_compiles(best, (a, -zeros), (a, zeros))
    assert_compiles(total, (a, -zeros))
