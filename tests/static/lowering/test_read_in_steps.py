"""Columns of points that many rows read: copied once, so that their elements lie side by side."""

from __future__ import annotations

import numpy as np
import pytest

import static as tw
from tests.bits import assert_all_same_bits
from tests.static.compare import assert_compiles, program_of

RNG = np.random.default_rng(0)


def overlaps(b):
    """Areas that pairs of boxes share; the columns of boxes are read in every row of pairs."""
    x, y, w, h = (b[:, k] for k in range(4))
    wide = tw.minimum((x + w)[:, None], (x + w)[None]) - tw.maximum(x[:, None], x[None])
    high = tw.minimum((y + h)[:, None], (y + h)[None]) - tw.maximum(y[:, None], y[None])
    return tw.relu(wide) * tw.relu(high)


def apart(x):
    """Distances of points of a batch, of which a dimension in the middle is read in steps."""
    return (x[:, :, None, 1] - x[:, None, :, 1]).abs() + (x[:, :, None, 0] * x[:, None, :, 2])


PROGRAMS = {
    "overlaps": (overlaps, [(70, 4), (3, 4), (0, 4), (17, 4)]),
    "apart": (apart, [(3, 40, 3), (5, 9, 3), (0, 20, 3), (2, 0, 3)]),
    "backwards": (lambda x: x.flip(0) * x[:, None, 0], [(70, 70), (1, 1)]),
    "sums": (lambda x: (x[:, None, 0] * x[None, :, 1]).exp().sum(1), [(70, 2), (1, 2)]),
    "turned": (lambda x: x.T[0] * x.T[:, :, None] + x[:, 1], [(30, 30), (20, 20)]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_columns_that_rows_share_have_the_same_bits_in_all_ways(name):
    program, shapes = PROGRAMS[name]
    inputs = [(RNG.normal(size=shape).astype(np.float32),) for shape in shapes]
    compiled = assert_compiles(program, *inputs)
    assert_compiles(tw.value_and_grad(lambda x: (program(x) ** 2).sum()), *inputs)
    by_numba = tw.function(program, compiler="numba")
    for (x,) in inputs:
        assert_all_same_bits([by_numba(x)], [compiled(x)], "numba")


def test_pairs_of_boxes_read_no_element_in_steps():
    b = RNG.integers(0, 9, (70, 4)).astype(np.float32)
    f = tw.function(overlaps)
    low, high = b[:, :2], b[:, :2] + b[:, 2:]
    shared = np.minimum(high[:, None], high[None]) - np.maximum(low[:, None], low[None])
    assert_all_same_bits([f(b)], [np.maximum(shared, 0).prod(2)], "numpy")
    groups = [group for step in program_of(f).steps for group in step.groups]
    pairs = [item for group in groups for item in group.items if len(item.dims) == 2]
    assert pairs
    assert {access.strides[1] for item in pairs for access in item.accesses} <= {0, 1}
