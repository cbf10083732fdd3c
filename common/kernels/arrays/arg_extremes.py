"""Kernels that find where the extreme of rows or columns is.

===============  ============  ===================  ====================================================
kernel           buffers       args                 result
===============  ============  ===================  ====================================================
``argmax_rows``  x, out        rows, columns        out[r] = first c with x[r, c] = max(x[r, :])
``argmax_cols``  x, out, keys  batch, rows, columns out[b, c] = first r with x[b, r, c] = max(x[b, :, c])
===============  ============  ===================  ====================================================

and ``argmin_rows``, ``argmin_cols``. The extreme is that of `common.kernels.arrays.sums`: the first NaN where there is
one, +0 above -0. x is of any dtype but uint8, out int64; `keys` is scratch of `KEYS` bytes. Status: 0,
or `EMPTY` for rows or columns of no elements (nothing is written then).

Many short rows are turned, and lie in the lanes of vectors then: 20,000 rows of 16 take 50 us instead of 650. So rows
have scratch, see `short_rows`. Rows of up to 8 are read several elements apart instead, if their number was known
when the kernel was made: vectors go over the rows.

All compare keys: integers whose order is that of the extremes, so that loops have no cases and vectorise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from common.compiler.close_steps import CLOSE
from common.compiler.primitives import Value, bits, constant, convert, dtype_of, is_float, lshr, select
from common.kernels.arrays.copying import buffer_dtype
from common.kernels.arrays.sums import EMPTY, TILE

__all__ = [
    "KEYS", "SCALARS", "argmax_cols_source", "argmax_rows_source", "argmin_cols_source", "argmin_rows_source",
    "falling_key", "key_dtype", "position_oracle", "rising_key", "short_rows",
]  # fmt: skip

KEYS = TILE * 8
"""Bytes of scratch for the keys of the best elements so far."""

_TOGETHER, _MOST_COLUMNS, _TURNED = 64, 62, 16384
"""Short rows that are handled together, their elements at most, and the bytes that these may take."""

_PART, _STRETCH, _SHORT = 512, 64, 16
"""Elements whose extreme is found at once; that are searched at once within such a part; and within a stretch of it."""


def short_rows(dtype: np.dtype[Any]) -> tuple[int, int]:
    """How many elements a row of a dtype has at most to be handled with others, and the bytes of scratch for that."""
    most = min(_MOST_COLUMNS, _TURNED // (_TOGETHER * dtype.itemsize) - 2)
    return most, (most + 2) * _TOGETHER * dtype.itemsize


def key_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of the keys of elements."""
    if dtype.kind == "f":
        return np.dtype(f"i{dtype.itemsize}")
    return np.dtype(np.int8) if dtype == np.bool_ else dtype


def rising_key(x: Value) -> Value:
    """Return an integer that is larger the larger x is; the largest for NaN; that of +0 is above that of -0."""
    return _key(x, False)


def falling_key(x: Value) -> Value:
    """Return an integer that is larger the smaller x is; the largest for NaN; that of -0 is above that of +0."""
    return _key(x, True)


def _key(x: Value, falling: bool) -> Value:
    if not is_float(x):
        whole = convert(x, np.int8) if dtype_of(x).kind == "b" else x
        return ~whole if falling else whole
    pattern = bits(x)
    key = pattern ^ lshr(pattern >> (8 * dtype_of(x).itemsize - 1), 1)  # negative: magnitudes in reverse
    key = ~key if falling else key
    return select(x == x, key, constant(np.iinfo(dtype_of(key)).max, key))


SCALARS = {f.__name__: f for f in (rising_key, falling_key)}
_KEY_OF = {"max": "rising_key", "min": "falling_key"}


def argmax_rows_source(dtype: Any, columns: int = 0) -> str:
    """Return the kernel that finds the first maximum of each row; rows of so many `columns` most often."""
    return _rows_source("max", np.dtype(dtype), columns)


def argmin_rows_source(dtype: Any, columns: int = 0) -> str:
    """Return the kernel that finds the first minimum of each row; rows of so many `columns` most often."""
    return _rows_source("min", np.dtype(dtype), columns)


def argmax_cols_source(dtype: Any) -> str:
    """Return the kernel that finds the first maximum of each column."""
    return _cols_source("max", np.dtype(dtype))


def argmin_cols_source(dtype: Any) -> str:
    """Return the kernel that finds the first minimum of each column."""
    return _cols_source("min", np.dtype(dtype))


def _few(key: str, whole: np.dtype[Any], columns: int) -> str:
    """Lines for rows of a few elements, whose number stands in the text: vectors go over the rows."""
    if not 2 <= columns <= CLOSE:
        return ""
    others = "".join(f"""
            new = {key}(x[r * {columns} + {c}])
            better = new > best
            best = where(better, new, best)
            place = where(better, {whole}({c}), place)""" for c in range(1, columns))  # fmt: skip
    return f"""
    if columns == {columns}:
        for r in range(rows):
            best = {key}(x[r * {columns}])
            place = {whole}(0){others}
            out[r] = to_int64(place)
        return 0"""


def _rows_source(name: str, dtype: np.dtype[Any], columns: int) -> str:
    """The extreme of each part of the row; then its place in the first part that has it, by stretches.

    So memory is read once. An element that is neither a zero nor NaN is compared as it is, which costs less than its
    key.
    """
    key, whole, kind = _KEY_OF[name], key_dtype(dtype), buffer_dtype(dtype)
    plain = "False" if dtype == np.bool_ else f"value == value and value != {dtype}(0)"
    return f"""def arg{name}_rows(bufs, args):
    x = buffer(bufs, 0, {kind})
    out = buffer(bufs, 1, int64)
    best_of = buffer(bufs, 2, {whole})
    turned = buffer(bufs, 2, {kind})
    rows = args[0]
    columns = args[1]
    if rows > 0 and columns < 1:
        return {EMPTY}
    wide(){_few(key, whole, columns)}
    if rows >= 16 and columns <= {short_rows(dtype)[0]}:
        for r in range(0, rows, {_TOGETHER}):
            n = min({_TOGETHER}, rows - r)
            turn_rows(turned, {2 * _TOGETHER}, x, r * columns, {_TOGETHER}, columns, columns, n)
            for k in range(n):
                best_of[k] = {key}(turned[{2 * _TOGETHER} + k])
                best_of[{_TOGETHER} + k] = {whole}(0)
            for c in range(1, columns):
                for k in range(n):
                    new = {key}(turned[{2 * _TOGETHER} + c * {_TOGETHER} + k])
                    better = new > best_of[k]
                    best_of[k] = where(better, new, best_of[k])
                    best_of[{_TOGETHER} + k] = where(better, to_{whole}(c), best_of[{_TOGETHER} + k])
            for k in range(n):
                out[r + k] = to_int64(best_of[{_TOGETHER} + k])
        return 0
    for r in range(rows):
        p = r * columns
        value = row_{name}(x, p, min({_PART}, columns))
        best = {key}(value)
        c = 0
        for start in range({_PART}, columns, {_PART}):
            other = row_{name}(x, p + start, min({_PART}, columns - start))
            if {key}(other) > best:
                value = other
                best = {key}(other)
                c = start
        end = min(c + {_PART}, columns)
        n = 0
        found = False
        if {plain}:
{_search("x[p + c + k] == value", _STRETCH, 12)}
            found = False
{_search("x[p + c + k] == value", _SHORT, 12)}
        else:
{_search(f"{key}(x[p + c + k]) == best", _STRETCH, 12)}
        while {key}(x[p + c]) != best:
            c += 1
        out[r] = c
    return 0
"""


def _search(test: str, stretch: int, indent: int) -> str:
    """Lines that move c to the first stretch with an element that passes; the last stretch may be shorter.

    Its length is not written as a constant: LLVM would unroll the loop before it could make vectors of it.
    """
    lines = f"""while c < end and not found:
    n = min({stretch}, end - c)
    for k in range(n):
        found = found | ({test})
    c += n
if found:
    c -= n"""
    return "\n".join(" " * indent + line for line in lines.splitlines())


def _cols_source(name: str, dtype: np.dtype[Any]) -> str:
    key = _KEY_OF[name]
    return f"""def arg{name}_cols(bufs, args):
    x = buffer(bufs, 0, {buffer_dtype(dtype)})
    out = buffer(bufs, 1, int64)
    best = buffer(bufs, 2, {key_dtype(dtype)})
    batch = args[0]
    rows = args[1]
    columns = args[2]
    if batch * columns > 0 and rows < 1:
        return {EMPTY}
    wide()
    for b in range(batch):
        for c0 in range(0, columns, {TILE}):
            width = min({TILE}, columns - c0)
            p = b * rows * columns + c0
            o = b * columns + c0
            for c in range(width):
                best[c] = {key}(x[p + c])
                out[o + c] = 0
            for r in range(1, rows):
                p += columns
                for c in range(width):
                    new = {key}(x[p + c])
                    old = best[c]
                    better = new > old
                    best[c] = where(better, new, old)
                    out[o + c] = where(better, r, out[o + c])
    return 0
"""


def position_oracle(x: np.ndarray, name: str) -> np.ndarray:
    """First positions of the extremes over the last axis, in plain numpy, from the definition."""
    low = name == "min"
    flat = x.reshape(-1, x.shape[-1])
    out = np.empty(len(flat), np.int64)
    for r, row in enumerate(flat):
        keys = [(0, 0.0) if v != v else (1, -v if not low else v) for v in row.tolist()]
        best = min(keys)
        places = [c for c, key in enumerate(keys) if key == best]
        if x.dtype.kind == "f" and best == (1, 0.0):
            wanted = [c for c in places if bool(np.signbit(row[c])) is low]
            places = wanted or places
        out[r] = places[0]
    return out.reshape(x.shape[:-1])
