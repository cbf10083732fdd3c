"""Products of panels and of windows of images, as Python that numba compiles, beside `static.export.numba_library`."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import numpy as np

from static.export.numba_library import SUM, block_product, block_sum, fma, fold16


def panel_width(a):
    """Columns of a panel of a right operand."""
    return 48


def panel_height(a):
    """Rows of a panel of a left operand."""
    return 8


def pack_left(a, i, ld, depth, rows, to, at):
    """Rows cut into panels of 8, of which each has its columns side by side."""
    for r in range(rows):
        for p in range(depth):
            to[at + r // 8 * 8 * depth + p * 8 + r % 8] = a[i + r * ld + p]


def pack_left_turned(a, i, ld, depth, rows, to, at):
    """The same of a matrix that is stored by columns."""
    for r in range(rows):
        for p in range(depth):
            to[at + r // 8 * 8 * depth + p * 8 + r % 8] = a[i + p * ld + r]


def pack_right_turned(a, i, ld, depth, columns, to, at):
    """Columns cut into panels of 48, of which each has its rows side by side."""
    for c in range(columns):
        for p in range(depth):
            to[at + c // 48 * 48 * depth + p * 48 + c % 48] = a[i + c * ld + p]


def multiply_panel(a, i, down, along, step, height, panel, at, depth, columns, out, o, ldc, p):
    """The product of rows and a panel; added to what is there if p is not 0."""
    total = np.empty(48, out.dtype)
    for r in range(height):
        total[:] = 0
        line = i + r // 8 * 8 * step + r % 8 * down
        for d in range(depth):
            x = a[line + d * along]
            for c in range(columns):
                total[c] = fma(x, panel[at + d * 48 + c], total[c])
        for c in range(columns):
            out[o + r * ldc + c] = total[c] if p == 0 else out[o + r * ldc + c] + total[c]


def next_place(place, column, row, kw, kh, dx, dy, dz):
    """The next place in a window of kw columns and kh rows, and its column and row."""
    if column + 1 < kw:
        return place + dx, column + 1, row
    if row + 1 < kh:
        return place + dy, 0, row + 1
    return place + dz, 0, 0


def multiply_windows(
    a, i, down, along, step, height, x, at, places, first, depth, columns, out, o, ldc, p, across, start, gap
):
    """The same with windows where they lie, row by row at their places; a gap after every `across` of them."""
    total = np.empty(48, out.dtype)
    for r in range(height):
        total[:] = 0
        line = i + r // 8 * 8 * step + r % 8 * down
        for d in range(depth):
            v = a[line + d * along]
            place = at + int(places[first + d])
            for c in range(columns):
                total[c] = fma(v, x[place + c + (start + c) // across * gap], total[c])
        for c in range(columns):
            out[o + r * ldc + c] = total[c] if p == 0 else out[o + r * ldc + c] + total[c]


def multiply_places(
    a, i, down, step, height, panel, at, table, first, depth, ends, careful, columns, out, o, ldc, further, p
):
    """The product of rows, whose elements are at places of a table or, where marks tell so, zeros, and a panel."""
    places, begin = table.view(np.int64), first * table.itemsize // 8
    total = np.empty(48, out.dtype)
    for r in range(height):
        total[:] = 0
        line, to = i + r // 8 * step + r % 8 * down, o + r // 8 * further + r % 8 * ldc
        own = ends & (60 | (r % 8 == 0) | (r % 8 == 7) * 2)
        for d in range(begin, begin + 2 * depth, 2):
            if careful != 0 or places[d] & own == 0:
                x = a[line + (places[d] >> 6)] if places[d] & own == 0 else a.dtype.type(0)
                for c in range(columns):
                    total[c] = fma(x, panel[at + places[d + 1] + c], total[c])
        for c in range(columns):
            out[to + c] = total[c] if p == 0 else out[to + c] + total[c]


def copy_windows(x, i, to, at, first, last, length, step, count, down, deeper):
    """Rows of windows, with zeros outside of first <= t < last."""
    for r in range(count):
        for t in range(length):
            to[at + r * deeper + t] = x[i + r * down + t * step] if first <= t < last else 0


def lay_windows(x, i, to, at, v, w, length, step, shift, shifts, first, last, lines, down, line, planes, plane):
    """Planes of rows of windows, so many times, each beginning `shift` elements later; zeros outside."""
    for c in range(planes):
        for k in range(shifts):
            for r in range(lines):
                for t in range(length):
                    there = first <= r < last and 0 <= v + k * shift + t * step < w
                    place = i + c * plane + r * down + k * shift + t * step
                    to[at + (c * shifts + k) * line + r * length + t] = x[place] if there else 0


def add_windows(rows, at, x, i, first, last, step, count, deeper, down):
    """Rows of windows added to where they are."""
    for r in range(count):
        for t in range(first, last):
            x[i + r * down + t * step] = x[i + r * down + t * step] + rows[at + r * deeper + t]


def add_products(rows, at, factor, f, x, i, first, last, step, count, deeper, down):
    """The same of rows times a number."""
    for r in range(count):
        for t in range(first, last):
            x[i + r * down + t * step] = x[i + r * down + t * step] + rows[at + r * deeper + t] * factor[f]


def fuse_windows(x, i, factor, f, to, at, first, last, length, step, count, down, deeper):
    """Rows of windows times a number, added by fused multiply-adds; zeros outside of first <= t < last."""
    for r in range(count):
        for t in range(length):
            v = x[i + r * down + t * step] if first <= t < last else x.dtype.type(0)
            to[at + r * deeper + t] = fma(factor[f], v, to[at + r * deeper + t])


def sum_windows(x, i, w, j, out, to, n, kw, kh, dx, dy, dz, step, length, rows, down, deeper):
    """The sum of n <= 64 numbers times the places of a window, for rows of windows; see `multiply_windows`."""
    lanes = np.empty(16, out.dtype)
    for r in range(rows):
        for t in range(length):
            lanes[:] = 0
            place, column, row = i + r * down + t * step, 0, 0
            for k in range(n):
                lanes[k & 15] = fma(w[j + k], x[place], lanes[k & 15])
                place, column, row = next_place(place, column, row, kw, kh, dx, dy, dz)
            for k in range(n, (n + 15) // 16 * 16):
                lanes[k & 15] = lanes[k & 15] + 0
            out[to + r * deeper + t] = fold16(lanes, 0, 1, SUM)


def fuse_lanes(x, i, y, j, lanes, at, start, length):
    """Products added to 16 chains in turns, the first one to that of number `start`."""
    for t in range(length):
        lane = at + (start + t) % 16
        lanes[lane] = fma(x[i + t], y[j + t], lanes[lane])


def fuse_places(x, i, y, j, lanes, at, n, kw, kh, dx, dy, dz, step, length, rows, down, start):
    """The same for n places of rows of windows, in lanes of their own; see `multiply_windows`."""
    place, column, row = j, 0, 0
    for k in range(n):
        for r in range(rows):
            for t in range(length):
                lane = at + k * 16 + (start + r * length + t) % 16
                lanes[lane] = fma(x[i + r * length + t], y[place + r * down + t * step], lanes[lane])
        place, column, row = next_place(place, column, row, kw, kh, dx, dy, dz)


def add_places(x, i, w, j, out, to, n, kw, kh, dx, dy, dz, length, rows, down, deeper):
    """Rounded products of numbers and n places, added up in order; see `multiply_windows`."""
    for r in range(rows):
        for t in range(length):
            total, place, column, row = x.dtype.type(0), i + r * down + t, 0, 0
            for k in range(n):
                total = total + w[j + k] * x[place]
                place, column, row = next_place(place, column, row, kw, kh, dx, dy, dz)
            out[to + r * deeper + t] = total


def sums_of_windows(
    step, size, x, i, out, at, across, count, before, line, deep, plane, rows, down, above, high, far, lines
):
    """Sums of `rows` rows of `count` windows, from +0.0 on; what is beside the image is left out.

    `step` is from one window of a row to the next, `across` from one of their `size` elements to the next.
    """
    for r in range(rows):
        for t in range(count):
            out[at + r * count + t] = 0
            for z in range(deep):
                for k in range(high):
                    y = r * down - above + k * far
                    if 0 <= y < lines:
                        for v in range(size):
                            if 0 <= t * step - before + v * across < line:
                                out[at + r * count + t] += x[i + z * plane + y * line + t * step - before + v * across]


def maxima_of_windows(
    step, size, x, i, out, at, across, count, before, line, deep, plane, rows, down, above, high, far, lines
):
    """The same for maxima: the first one, or the last NaN."""
    for r in range(rows):
        for t in range(count):
            best = x.dtype.type(-np.inf)
            for z in range(deep):
                for k in range(high):
                    y = r * down - above + k * far
                    if 0 <= y < lines:
                        for v in range(size):
                            if 0 <= t * step - before + v * across < line:
                                new = x[i + z * plane + y * line + t * step - before + v * across]
                                if new > best or new != new:
                                    best = new
            out[at + r * count + t] = best


def first_maximum(x, at, n):
    """Where the maximum is: the first one, or the last NaN."""
    best = 0
    for i in range(n):
        if x[at + i] > x[at + best] or x[at + i] != x[at + i]:
            best = i
    return best


def put_at_maxima(v, i, x, at, out, to, size, count, rows, down, deep, plane, high, line):
    """Numbers put where the maxima of windows of `size` columns are: the first one, or the last NaN."""
    for r in range(rows):
        for t in range(count):
            first = r * down + t * size
            best = first
            for k in range(deep * high * size):
                place = first + k // (high * size) * plane + k // size % high * line + k % size
                out[to + place] = 0
                if x[at + place] > x[at + best] or x[at + place] != x[at + place]:
                    best = place
            out[to + best] = out[to + best] + v[i + r * count + t]


def short_sums(x, i, out, at, rows, columns):
    """Sums of rows."""
    for r in range(rows):
        out[at + r] = block_sum(x, i + r * columns, columns)


def short_products(x, i, out, at, rows, columns):
    """Products of rows."""
    for r in range(rows):
        out[at + r] = block_product(x, i + r * columns, columns)
