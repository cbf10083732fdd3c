"""Rows of a transposed array, turned square by square, beside numpy's transpose."""

from __future__ import annotations

import numpy as np
import pytest

from common.core.dtypes import SUPPORTED
from common.kernels.arrays.copying import buffer_dtype
from common.kernels.arrays.turned_rows import ROWS
from tests.kernels.run import assert_same_bits, run, special_values

SIZES = [(1, 1), (16, 1), (3, 5), (16, 16), (7, 33), (16, 70), (9, 0)]


@pytest.mark.parametrize("dtype", [dtype.name for dtype in SUPPORTED])
def test_rows_are_those_of_the_transpose_and_nothing_is_read_or_written_beyond(dtype):
    kind = buffer_dtype(dtype)
    source = f"""def turned(bufs, args):
    to = buffer(bufs, 0, {kind})
    x = buffer(bufs, 1, {kind})
    turn_rows(to, args[0], x, args[1], args[2], args[3], args[4])
    return 0
"""
    rng = np.random.default_rng(0)
    for rows, columns in SIZES:
        ld = rows + int(rng.integers(0, 5))
        size = 3 + columns * ld
        x = rng.random(size) < 0.5 if dtype == "bool" else special_values(rng, (size,), dtype)
        to = np.zeros(2 + ROWS * columns + 2, dtype)
        assert run(source, [to, x], [2, 3, ld, rows, columns]) == 0
        wanted = x[3 : 3 + columns * ld].reshape(columns, ld)[:, :rows].T
        assert_same_bits(to[2 : 2 + rows * columns].reshape(rows, columns), np.ascontiguousarray(wanted))
        assert not to[:2].any() and not to[2 + ROWS * columns :].any()
