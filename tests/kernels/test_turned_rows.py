"""A matrix copied transposed, square by square, beside numpy's transpose."""

from __future__ import annotations

import numpy as np
import pytest

from common.core.dtypes import SUPPORTED
from common.kernels.arrays.copying import buffer_dtype
from tests.kernels.run import assert_same_bits, run, special_values

SIZES = [(1, 1), (16, 1), (3, 5), (16, 16), (7, 33), (70, 16), (9, 0), (0, 9), (9, 21), (33, 17), (17, 5)]


@pytest.mark.parametrize("dtype", [dtype.name for dtype in SUPPORTED])
def test_the_copy_is_numpys_and_nothing_else_is_written(dtype):
    kind = buffer_dtype(dtype)
    source = f"""def turned(bufs, args):
    to = buffer(bufs, 0, {kind})
    x = buffer(bufs, 1, {kind})
    turn_rows(to, args[0], x, args[1], args[2], args[3], args[4], args[5])
    return 0
"""
    rng = np.random.default_rng(0)
    for rows, columns in SIZES:
        row, step = columns + int(rng.integers(0, 5)), rows + int(rng.integers(0, 5))
        size = 3 + columns * step
        x = rng.random(size) < 0.5 if dtype == "bool" else special_values(rng, (size,), dtype)
        to, wanted = np.zeros((2, 2 + rows * row + 2), dtype)
        assert run(source, [to, x], [2, 3, row, step, rows, columns]) == 0
        wanted[2 : 2 + rows * row].reshape(rows, row)[:, :columns] = x[3:].reshape(columns, step)[:, :rows].T
        assert_same_bits(to, wanted)
