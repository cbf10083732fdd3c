"""Kernels that move or make elements: strided copies, fill, arange, eye, conversion between dtypes.

Buffers are C-contiguous or, where strides are given, addressed by element strides of any sign from an
offset. Kernels that only move elements are compiled per element size (`bits_of`) and keep NaN payloads.

=================  =======  ==============================  =====================================
kernel             buffers  args                            result
=================  =======  ==============================  =====================================
``copy``           x, out   `copy_args`                     out[strided] = x[strided]
``fill``           out      n, `value_bits`                 out[i] = value
``arange``         out      n, start, step                  out[i] = start + i step, in int64
``arange_floats``  out      n, `value_bits` of start, step  out[i] = start + i step, in float64
``eye``            out      rows, columns                   out[r, c] = 1 if r == c else 0
``cast``           x, out   n                               out[i] = x[i] by `primitives.convert`
``stepped_rows``   x, out   planes, rows, columns, and      out[p, r, c] = x[p d + r e + c step]
                            distances d and e of the former
``interleaved``   x, out   planes, columns, and distances   out[p, c, i] = x[p d + i e + c], for a few known i
                            d and e of planes and of rows
=================  =======  ==============================  =====================================

No kernel needs scratch or returns a status other than 0. ``copy`` serves contiguous copies of views (x is
strided), the pieces of cat and writes into a view (out is strided); x and out do not overlap. Beside each
source stands a function that makes the `NativeCall`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from common.core.dtypes import name_of
from common.core.op import NativeCall
from common.core.sizes import same

__all__ = [
    "LONG", "arange", "arange_source", "bits_of", "cast_source", "copy", "copy_args", "copy_source", "eye",
    "eye_source", "fill", "fill_source", "fill_zero", "interleaved_source", "merge_dims", "scatter",
    "stepped_source", "value_bits",
]  # fmt: skip

LONG = 16
"""Elements of a row from which on a kernel copies it backwards, or reads it where it lies."""
_VECTOR_BYTES = 32

_TILE = 32
"""Rows and columns that a transposing copy handles together, so that each cache line is read once."""


def buffer_dtype(dtype: Any) -> str:
    """The name of a dtype in kernel source."""
    kind = np.dtype(dtype)
    return "bool_" if kind == np.bool_ else kind.name


def bits_of(dtype: Any) -> str:
    """Return the unsigned integer dtype as wide as `dtype`."""
    return f"uint{8 * np.dtype(dtype).itemsize}"


def value_bits(value: Any, dtype: Any) -> int:
    """Return the bit pattern of `value` in `dtype`, as an arg.

    Examples
    --------
    >>> hex(value_bits(1.0, "float32"))
    '0x3f800000'
    """
    pattern = int(np.asarray(value).astype(dtype).view(bits_of(dtype)))
    return pattern - (1 << 64 if pattern >= 1 << 63 else 0)


_AT_ONCE, _WRITTEN = 16, 2048
"""Rows of a transposed copy that are written together, or elements of short ones: more rows may share few places of the
cache.
"""


# ---------------------------------------------------------------- strided copies
def merge_dims(shape: Sequence[Any], *strides: Sequence[Any]) -> tuple[list[Any], ...]:
    """Merge neighbouring dimensions that all arrays walk in one stride, and drop those of length 1.

    Symbolic sizes are merged where they are equal as formulas, so that no guard is needed.

    Examples
    --------
    >>> merge_dims((2, 1, 3, 4), (12, 7, 4, 1), (24, 0, 8, 2))
    ([24], [1], [2])
    """
    kept: list[list[Any]] = []
    for length, *steps in zip(shape, *strides, strict=True):
        if isinstance(length, int) and length == 1:
            continue
        if kept and all(same(outer, step * length) for outer, step in zip(kept[-1][1:], steps, strict=True)):
            kept[-1] = [kept[-1][0] * length, *steps]
        else:
            kept.append([length, *steps])
    return tuple([row[i] for row in kept] for i in range(1 + len(strides)))


def copy_args(
    shape: Sequence[Any],
    offset: Any = 0,
    strides: Sequence[Any] | None = None,
    out_offset: Any = 0,
    out_strides: Sequence[Any] | None = None,
) -> tuple[Any, ...]:
    """Return the args of ``copy``: ``ndim, offset, out_offset, *shape, *strides, *out_strides``.

    Parameters
    ----------
    shape : sequence of ints
        What is copied.
    offset, strides
        Where it is read, in elements; by default from the beginning, contiguous.
    out_offset, out_strides
        Where it is written, likewise.
    """
    dense: list[Any] = [1][: len(shape)]
    for length in reversed(shape[1:]):
        dense.insert(0, dense[0] * length)
    lengths, source, target = merge_dims(shape, strides or dense, out_strides or dense)
    return (max(len(lengths), 1), offset, out_offset, *(lengths or [1]), *(source or [1]), *(target or [1]))


def copy_source(dtype: Any) -> str:
    """Return the kernel that copies between strided arrays; it transposes in registers, or else tile by tile."""
    kind = bits_of(dtype)
    return f"""def copy(bufs, args):
    x = buffer(bufs, 0, {kind})
    out = buffer(bufs, 1, {kind})
    ndim = args[0]
    planes = 1
    for d in range(ndim - 2):
        planes *= args[3 + d]
    across = args[2 + ndim]
    p1 = args[2 + ndim + ndim]
    q1 = args[2 + ndim + ndim + ndim]
    down = 1
    p2 = 0
    q2 = 0
    if ndim > 1:
        down = args[1 + ndim]
        p2 = args[1 + ndim + ndim]
        q2 = args[1 + ndim + ndim + ndim]
    for plane in range(planes):
        rest = plane
        p0 = args[1]
        q0 = args[2]
        for d in range(ndim - 3, -1, -1):
            length = args[3 + d]
            p0 += rest % length * args[3 + ndim + d]
            q0 += rest % length * args[3 + ndim + ndim + d]
            rest //= length
        if p1 == 1 and q1 == 1:
            for i in range(down):
                p = p0 + i * p2
                q = q0 + i * q2
                for j in range(across):
                    out[q + j] = x[p + j]
        elif p1 == 0 and q1 == 1:
            for i in range(down):
                value = x[p0 + i * p2]
                q = q0 + i * q2
                for j in range(across):
                    out[q + j] = value
        elif p1 == -1 and q1 == 1:
            for i in range(down):
                p = p0 + i * p2
                q = q0 + i * q2
                for j in range(across):
                    out[q + j] = x[p - j]
        elif p2 == 1 and q1 == 1:
            some = max({_AT_ONCE}, {_WRITTEN} // max(across, 1))
            for i in range(0, down, some):
                turn_rows(out, q0 + i * q2, x, p0 + i, q2, p1, min(some, down - i), across)
        else:
            tile = {_TILE} if p2 * p2 < p1 * p1 else max(down, across, 1)
            for i0 in range(0, down, tile):
                for j0 in range(0, across, tile):
                    for i in range(i0, min(i0 + tile, down)):
                        p = p0 + i * p2
                        q = q0 + i * q2
                        for j in range(j0, min(j0 + tile, across)):
                            out[q + j * q1] = x[p + j * p1]
    return 0
"""


def stepped_source(dtype: Any, step: int) -> str:
    """Return the source of ``stepped_rows`` of at least `LONG` elements `step` apart.

    Elements that follow each other are copied by vectors, the last of which begins before what is left of a row.
    """
    kind = bits_of(dtype)
    width = min(_VECTOR_BYTES // np.dtype(dtype).itemsize, LONG)

    def vector(start: str, depth: int) -> str:
        lines = [f"v{i} = x[p + {start} + {i}]" for i in range(width)]
        lines += [f"out[q + {start} + {i}] = v{i}" for i in range(width)]
        return "".join(f"{' ' * depth}{line}\n" for line in lines)

    row = f"            for c in range(n):\n                out[q + c] = x[p + c * {step}]\n"
    if step == 1:
        row = f"            last = n - {width}\n            for c in range(0, last, {width}):\n{vector('c', 16)}"
        row += vector("last", 12)
    return f"""def stepped_rows(bufs, args):
    x = buffer(bufs, 0, {kind})
    out = buffer(bufs, 1, {kind})
    rows = args[1]
    n = args[2]
    wide()
    for plane in range(args[0]):
        for r in range(rows):
            p = plane * args[3] + r * args[4]
            q = (plane * rows + r) * n
{row}    return 0
"""


def interleaved_source(dtype: Any, rows: int) -> str:
    """Return the source of ``interleaved`` for so many rows."""
    kind = bits_of(dtype)
    stores = "\n".join(f"            out[q + c * {rows} + {i}] = x[p + {i} * args[3] + c]" for i in range(rows))
    return f"""def interleaved(bufs, args):
    x = buffer(bufs, 0, {kind})
    out = buffer(bufs, 1, {kind})
    n = args[1]
    wide()
    for plane in range(args[0]):
        p = plane * args[2]
        q = plane * n * {rows}
        for c in range(n):
{stores}
    return 0
"""


def copy(dtype: Any, args: tuple[Any, ...], buffers: tuple[int, int] | None = None) -> NativeCall:
    """Copy between strided arrays, with `args` from `copy_args`."""
    return NativeCall(copy_source(dtype), "copy", args, buffers)


def scatter(
    dtype: Any, shape: Sequence[Any], offset: Any, strides: Sequence[Any], buffers: tuple[int, int]
) -> NativeCall:
    """Copy a contiguous array to a strided place: a piece of cat, the gradient of a slice."""
    return copy(dtype, copy_args(shape, out_offset=offset, out_strides=strides), buffers)


# ---------------------------------------------------------------- new elements
def fill_source(dtype: Any) -> str:
    """Return the kernel that fills an array with one value."""
    kind = bits_of(dtype)
    return f"""def fill(bufs, args):
    out = buffer(bufs, 0, {kind})
    value = to_{kind}(args[1])
    for i in range(args[0]):
        out[i] = value
    return 0
"""


def fill(dtype: Any, n: Any, value: Any, buffers: tuple[int] | None = None) -> NativeCall:
    """Fill `n` elements with a number."""
    return NativeCall(fill_source(dtype), "fill", (n, value_bits(value, dtype)), buffers)


def fill_zero(dtype: Any, n: Any, buffers: tuple[int] | None = None) -> NativeCall:
    """Fill `n` elements with zero."""
    return fill(dtype, n, 0, buffers)


def arange_source(dtype: Any, floats: bool = False) -> str:
    """Return the kernel that counts in int64 (wrapping) or in float64, and converts once to `dtype`."""
    name, target = _named(dtype)
    if floats:
        return f"""def arange_floats(bufs, args):
    wide()
    out = buffer(bufs, 0, {name})
    start = float_of_bits(args[1])
    step = float_of_bits(args[2])
    for i in range(args[0]):
        out[i] = {target}(start + to_float64(i) * step)
    return 0
"""
    return f"""def arange(bufs, args):
    out = buffer(bufs, 0, {name})
    for i in range(args[0]):
        out[i] = {target}(args[1] + i * args[2])
    return 0
"""


def halves_source(dtype: Any) -> str:
    """Return the kernel of numbers between two ends in float64, each half counted from its own, and converted once.

    Buffer out. Args: how many, how many of the first half, and the bits of the ends and of the step.
    """
    name, target = _named(dtype)
    return f"""def halves(bufs, args):
    wide()
    out = buffer(bufs, 0, {name})
    first = float_of_bits(args[2])
    last = float_of_bits(args[3])
    step = float_of_bits(args[4])
    for i in range(args[1]):
        out[i] = {target}(first + to_float64(i) * step)
    for i in range(args[1], args[0]):
        out[i] = {target}(last - to_float64(args[0] - 1 - i) * step)
    return 0
"""


def arange(dtype: Any, count: Any, start: Any, step: Any) -> NativeCall:
    """Count from `start` by `step`: in int64 if both are ints, else in float64."""
    if isinstance(start, float) or isinstance(step, float):
        bits = value_bits(start, np.float64), value_bits(step, np.float64)
        return NativeCall(arange_source(dtype, floats=True), "arange_floats", (count, *bits))
    return NativeCall(arange_source(dtype), "arange", (count, start, step))


def eye_source(dtype: Any) -> str:
    """Return the kernel of the identity matrix."""
    kind = bits_of(dtype)
    return f"""def eye(bufs, args):
    out = buffer(bufs, 0, {kind})
    columns = args[1]
    for i in range(args[0] * columns):
        out[i] = {kind}(0)
    for i in range(min(args[0], columns)):
        out[i * columns + i] = {kind}({value_bits(1, dtype)})
    return 0
"""


def eye(dtype: Any, rows: Any, columns: Any) -> NativeCall:
    """Make ones on the diagonal and zeros elsewhere."""
    return NativeCall(eye_source(dtype), "eye", (rows, columns))


def cast_source(dtype: Any, target: Any) -> str:
    """Return the kernel that converts from `dtype` to `target`."""
    name, convert = _named(target)
    return f"""def cast(bufs, args):
    x = buffer(bufs, 0, {_named(dtype)[0]})
    out = buffer(bufs, 1, {name})
    for i in range(args[0]):
        out[i] = {convert}(x[i])
    return 0
"""


def _named(dtype: Any) -> tuple[str, str]:
    """Return a dtype's name in kernel source and that of its conversion."""
    return buffer_dtype(dtype), f"to_{name_of(np.dtype(dtype))}"
