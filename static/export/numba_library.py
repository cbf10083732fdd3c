"""Functions of kernels beyond scalar operations, as Python that numba compiles: sums, extremes and products.

These functions are copied into the files that `static.export.numba_module` writes, with those that they call. Arrays
are one-dimensional; a place in one is where a part begins. `common.kernels.arrays.sums` and docs/numerics.md define the
orders, `common.kernels.arrays.row_functions` the names.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import Any

import numpy as np

fma: Any = None
"""In a written file: ``fma(x, y, z)``, x * y + z rounded once."""


SUM, PRODUCT, SQUARES, MAGNITUDES, CUBES, NUMBERS = range(6)
"""The terms of a fold."""


def term(x, how):
    """The contribution of an element to a fold."""
    if how == SQUARES:
        return x * x
    if how == MAGNITUDES:
        return abs(x)
    if how == NUMBERS:
        return x if x == x else type(x)(0)
    return abs(x) * abs(x) * abs(x) if how == CUBES else x


def combined(x, y, how):
    """Two parts of a fold as one."""
    return x * y if how == PRODUCT else x + y


def fold16(lanes, at, step, how):
    """Fold 16 lanes, which lie `step` apart: lane j with j + 8, then + 4, + 2, + 1."""
    half = np.empty(8, lanes.dtype)
    for j in range(8):
        half[j] = combined(lanes[at + j * step], lanes[at + (j + 8) * step], how)
    for j in range(4):
        half[j] = combined(half[j], half[j + 4], how)
    for j in range(2):
        half[j] = combined(half[j], half[j + 2], how)
    return combined(half[0], half[1], how)


def fold_blocks(x, at, n, how, totals):
    """Fold each block of 1024 elements in 16 lanes; how many blocks there are."""
    lanes, blocks = np.empty(16, x.dtype), max((n + 1023) // 1024, 1)
    for block in range(blocks):
        lanes[:] = int(how == PRODUCT)
        for i in range(1024 * block, min(1024 * block + 1024, n)):
            lanes[i & 15] = combined(lanes[i & 15], term(x[at + i], how), how)
        totals[block] = fold16(lanes, 0, 1, how)
    return blocks


def fold(x, at, n, how):
    """The fold of n elements in the defined order: blocks of elements, then blocks of blocks."""
    totals = np.empty(max((n + 1023) // 1024, 1), x.dtype)
    n = fold_blocks(x, at, n, how, totals)
    while n > 1:
        n = fold_blocks(totals, 0, n, PRODUCT if how == PRODUCT else SUM, totals)
    return totals[0]


def block_sum(x, at, n):
    """The sum of n elements."""
    return fold(x, at, n, SUM)


def block_product(x, at, n):
    """The product of n elements."""
    return fold(x, at, n, PRODUCT)


def block_squares(x, at, n):
    """The sum of n squares."""
    return fold(x, at, n, SQUARES)


def block_magnitudes(x, at, n):
    """The sum of n magnitudes."""
    return fold(x, at, n, MAGNITUDES)


def block_cubes(x, at, n):
    """The sum of n cubed magnitudes."""
    return fold(x, at, n, CUBES)


def block_numbers(x, at, n):
    """The sum of those of n elements that are no NaN."""
    return fold(x, at, n, NUMBERS)


def fold_lanes(lanes, at):
    """The sum of 16 accumulators."""
    return fold16(lanes, at, 1, SUM)


def fold_rows(acc, at, columns):
    """Fold 16 rows of accumulators into the first."""
    for c in range(columns):
        acc[at + c] = fold16(acc, at + c, columns, SUM)


def larger(x, y):
    """The larger of two numbers: NaN if one is, +0 above -0."""
    if x == 0 and y == 0:
        return x + y
    return y if y > x or y != y else x


def smaller(x, y):
    """The smaller of two numbers: NaN if one is, -0 below +0."""
    if x == 0 and y == 0:
        return -(-x + -y)
    return y if y < x or y != y else x


def row_max(x, at, n):
    """The maximum of n >= 1 numbers."""
    best = x[at : at + 1].copy()
    for i in range(1, n):
        best[0] = larger(best[0], x[at + i])
    return best[0]


def row_min(x, at, n):
    """The minimum of n >= 1 numbers."""
    best = x[at : at + 1].copy()
    for i in range(1, n):
        best[0] = smaller(best[0], x[at + i])
    return best[0]


def row_any(x, at, n):
    """Whether one of n bools holds."""
    return x[at : at + n].any()


def row_all(x, at, n):
    """Whether all of n bools hold."""
    return x[at : at + n].all()


def turn_rows(out, to, x, at, row, step, rows, columns):
    """Copy a matrix transposed."""
    for c in range(columns):
        for r in range(rows):
            out[to + r * row + c] = x[at + c * step + r]


def squares_of_differences(a, i, b, j, out, to, n, k):
    """The sums of the squared differences of a row and each of n others."""
    for r in range(n):
        out[to + r] = fold(a[i : i + k] - b[j + r * k : j + r * k + k], 0, k, SQUARES)


def magnitudes_of_differences(a, i, b, j, out, to, n, k):
    """The same of magnitudes."""
    for r in range(n):
        out[to + r] = fold(a[i : i + k] - b[j + r * k : j + r * k + k], 0, k, MAGNITUDES)


def largest_of_differences(a, i, b, j, out, to, n, k):
    """The largest magnitudes."""
    for r in range(n):
        out[to + r] = 0
        for c in range(k):
            out[to + r] = larger(out[to + r], abs(a[i + c] - b[j + r * k + c]))


def add_slopes(a, i, b, j, w, q, sums, at, width, n):
    """Add differences times weights to the accumulators of their lanes."""
    for p in range(n):
        for c in range(width):
            lane = at + (p & 15) * width + c
            sums[lane] = sums[lane] + (a[i + c] - b[j + p]) * w[q + p * width + c]


def max_of_rows(out, to, x, at, columns, rows):
    """Let `out` be the maximum of itself and each row."""
    for r in range(rows):
        for c in range(columns):
            out[to + c] = larger(out[to + c], x[at + r * columns + c])


def min_of_rows(out, to, x, at, columns, rows):
    """Let `out` be the minimum of itself and each row."""
    for r in range(rows):
        for c in range(columns):
            out[to + c] = smaller(out[to + c], x[at + r * columns + c])


def any_of_rows(out, to, x, at, columns, rows):
    """Let `out` hold where it does or a row does."""
    for r in range(rows):
        for c in range(columns):
            out[to + c] = out[to + c] or x[at + r * columns + c]


def all_of_rows(out, to, x, at, columns, rows):
    """Let `out` hold where it does and all rows do."""
    for r in range(rows):
        for c in range(columns):
            out[to + c] = out[to + c] and x[at + r * columns + c]


def start_level(acc, at, columns, how):
    """Let the 16 lanes of each column begin."""
    for i in range(16 * columns):
        acc[at + i] = int(how == PRODUCT)


def start_levels(acc, at, columns, rows, how):
    """Let the accumulators of all levels of blocks begin."""
    start_level(acc, at, columns, how)
    while rows > 1024:
        rows = (rows + 1023) // 1024
        at += 16 * columns
        start_level(acc, at, columns, how)


def close_block(acc, at, columns, block, how):
    """Hand the block with this number to the next level; its lanes begin again."""
    lane = at + (16 + (block & 15)) * columns
    for c in range(columns):
        acc[lane + c] = combined(acc[lane + c], fold16(acc, at + c, columns, how), how)
    start_level(acc, at, columns, how)


def carry_levels(acc, at, columns, block, how):
    """Close a block that another follows; before it, on each level above, the block that was full."""
    depth, number = 0, block
    while number > 0 and number & 1023 == 0:
        depth, number = depth + 1, (number >> 10) - 1
    for level in range(depth, -1, -1):
        number = block
        for _ in range(level):
            number = (number >> 10) - 1
        close_block(acc, at + level * 16 * columns, columns, number, how)


def finish_levels(acc, at, columns, rows, out, to, how):
    """Close the last blocks of all levels, and write what they give."""
    while rows > 1024:
        carry_levels(acc, at, columns, (rows - 1) >> 10, how)
        rows = (rows + 1023) // 1024
        at += 16 * columns
    for c in range(columns):
        out[to + c] = fold16(acc, at + c, columns, how)


def start_columns(acc, at, columns, rows):
    """Begin the sums of columns."""
    start_levels(acc, at, columns, rows, SUM)


def carry_columns(acc, at, columns, block):
    """Close a block of rows that another follows."""
    carry_levels(acc, at, columns, block, SUM)


def finish_columns(acc, at, columns, rows, out, to):
    """Write the sums of columns."""
    finish_levels(acc, at, columns, rows, out, to, SUM)


def start_products(acc, at, columns, rows):
    """Begin the products of columns."""
    start_levels(acc, at, columns, rows, PRODUCT)


def carry_products(acc, at, columns, block):
    """Close a block of rows that another follows."""
    carry_levels(acc, at, columns, block, PRODUCT)


def finish_products(acc, at, columns, rows, out, to):
    """Write the products of columns."""
    finish_levels(acc, at, columns, rows, out, to, PRODUCT)


def fold_columns(x, at, rows, columns, out, to, how):
    """Fold each column of at most 1024 rows."""
    lanes = np.empty(16, x.dtype)
    for c in range(columns):
        lanes[:] = int(how == PRODUCT)
        for r in range(rows):
            lanes[r & 15] = combined(lanes[r & 15], term(x[at + r * columns + c], how), how)
        out[to + c] = fold16(lanes, 0, 1, how)


def whole_columns(x, at, rows, columns, out, to):
    """The sums of columns."""
    fold_columns(x, at, rows, columns, out, to, SUM)


def whole_products(x, at, rows, columns, out, to):
    """The products of columns."""
    fold_columns(x, at, rows, columns, out, to, PRODUCT)


def whole_squares(x, at, rows, columns, out, to):
    """The sums of squares of columns."""
    fold_columns(x, at, rows, columns, out, to, SQUARES)


def whole_magnitudes(x, at, rows, columns, out, to):
    """The sums of magnitudes of columns."""
    fold_columns(x, at, rows, columns, out, to, MAGNITUDES)


def whole_cubes(x, at, rows, columns, out, to):
    """The sums of cubed magnitudes of columns."""
    fold_columns(x, at, rows, columns, out, to, CUBES)


def whole_numbers(x, at, rows, columns, out, to):
    """The sums of what is no NaN of columns."""
    fold_columns(x, at, rows, columns, out, to, NUMBERS)


def multiply(a, i, b, j, c, at, m, n, k, lda, ldb, ldc, trans_a, trans_b):
    """A product of matrices: chains of fused multiply-adds over blocks of 256, which are added in order."""
    total = np.empty(n, c.dtype)
    for row in range(m):
        place = at + row * ldc
        for first in range(0, k, 256):
            total[:] = 0
            for p in range(first, min(first + 256, k)):
                x = a[i + (p * lda + row if trans_a else row * lda + p)]
                for column in range(n):
                    y = b[j + (column * ldb + p if trans_b else p * ldb + column)]
                    total[column] = fma(x, y, total[column])
            for column in range(n):
                c[place + column] = total[column] if first == 0 else c[place + column] + total[column]


def multiply_vector(a, i, x, j, out, at, m, k, lda, trans):
    """A product of a matrix and a vector: 16 chains of fused multiply-adds, which are folded."""
    lanes = np.empty(16, out.dtype)
    for row in range(m):
        lanes[:] = 0
        for p in range(k):
            y = a[i + (p * lda + row if trans else row * lda + p)]
            lanes[p & 15] = fma(y, x[j + p], lanes[p & 15])
        out[at + row] = fold16(lanes, 0, 1, SUM) + 0
