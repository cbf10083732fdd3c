"""The largest and smallest elements of columns that are computed where they are reduced: several rows at once."""

from __future__ import annotations

import numpy as np
import pytest

import static as tw
from tests.static.compare import assert_compiles
from tests.static.lowering.test_indexed import floats


def extremes(x):
    return tw.amax(x * 2, -2), tw.amin(x - 1, -2)


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 50, 66, 263])
def test_few_and_many_rows(rows):
    x = floats(3, rows, 40)
    x[0, rows // 2, :3] = np.nan, np.inf, -np.inf
    x[1, :, :2] = -0.0
    x[1, rows - 1, 1] = 0.0
    compiled = assert_compiles(extremes, (x,), (x[:, ::-1].copy(),))
    largest, smallest = compiled(x)
    np.testing.assert_array_equal(largest, (x * 2).max(1))
    np.testing.assert_array_equal(smallest, (x - 1).min(1))
    np.testing.assert_array_equal(np.signbit(largest[1, :2]), [True, False])


def test_whole_numbers_and_truth_values():
    x = (floats(70, 1100) * 100).astype(np.int64)
    compiled = assert_compiles(extremes, (x,))
    np.testing.assert_array_equal(compiled(x)[0], (x * 2).max(0))
    assert_compiles(lambda x: tw.amax(x > 50, 0), (x,))


def test_beside_a_sum():
    """Sums take in rows of their lane, and extremes beside them the same rows."""
    assert_compiles(lambda x: (tw.amax(x * 2, 0), tw.sum(x * 2, 0)), (floats(50, 33),), (floats(263, 33),))
