"""Kernels that read and add at indices: gather, scatter, slices along a dimension, one element per row.

Indices are int64 or int32, ``0 <= index < extent``; negative ones are refused: the status tells the first that is
wrong, see `common.kernels.arrays.coordinates.WrongIndex`, and the result is of no use. ``gather`` and
``scatter_zeros``, whose index is as large as the result, check some thousand in vectors before they use them; the
others check all of them first. Additions to one element happen one at a time in ascending C order of the index array,
starting from +0.0, so the bits are defined although indices repeat.

An array is seen as (outer, extent, inner), `extent` being the dimension that is indexed. ``scatter_zeros``,
``put_zeros`` and ``spread`` first fill out with zeros.

=================  =============  ===========================  =======================================
kernel             buffers        args                         result
=================  =============  ===========================  =======================================
``gather``         x, index, out  outer, extent, inner, count  out[o, i, c] = x[o, index[o, i, c], c]
``scatter_zeros``  g, index, out  outer, extent, inner, count  out[o, index[o, i, c], c] += g[o, i, c]
``take``           x, index, out  outer, extent, inner, count  out[o, i, c] = x[o, index[i], c]
``put_zeros``      g, index, out  outer, extent, inner, count  out[o, index[i], c] += g[o, i, c]
``pick``           x, index, out  rows, columns                out[r] = x[r, index[r]]
``spread``         g, index, out  rows, columns                out[r, index[r]] = g[r]
``one_hot``        index, out     count, classes               out[i, c] = 1 if index[i] == c else 0
``counts``         index, parts   count, extent                parts[index[i]] += 1
``positions``      mask, out      see `positions_source`       coordinates of the true elements, in C order
=================  =============  ===========================  =======================================

``take`` and ``put_zeros`` with ``outer = 1`` are an embedding and its gradient; then threads share the indices of
``take``, which has a further int, see `common.kernels.arrays.shared_parts`. No kernel needs scratch; ``counts`` has
four parts of `extent` counts, so that equal neighbours do not wait for each other, and leaves the sum in the first; it
checks nothing. The ones that only move elements are compiled per element size and keep NaN payloads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from common.kernels.arrays.coordinates import telling
from common.kernels.arrays.copying import bits_of, value_bits
from common.kernels.arrays.shared_parts import in_parts

__all__ = [
    "COUNTS", "gather_source", "one_hot_source", "pick_source", "positions_source", "put_zeros_source",
    "scatter_zeros_source", "spread_source", "take_source", "unpool_source",
]  # fmt: skip

_AT_ONCE = 4096
"""Indices that are checked before they are used: they are still in the nearest cache then."""
_ALL = "    low = 0\n    high = count\n"


def gather_source(dtype: Any, index_dtype: Any) -> str:
    """Return the kernel of torch.gather, for sizes that agree in the other dimensions."""
    move = ["for p in range(q, q + n):", "    out[p] = x[o * extent + to_int64(index[p])]"]
    return _everywhere("gather", bits_of(dtype), index_dtype, "", move, "out[p + c] = x[at]")


def scatter_zeros_source(dtype: Any, index_dtype: Any) -> str:
    """Return the kernel of torch.scatter_add into zeros."""
    kind = np.dtype(dtype)

    def row(i: str, at: str) -> str:
        return f"out[{at}] = {_total(kind, f'out[{at}]', f'x[{i}]')}"

    move = ["for p in range(q, q + n - 3, 4):"]
    move += [f"    at{k} = o * extent + to_int64(index[p + {k}])" for k in range(4)]
    move += ["    " + row(f"p + {k}", f"at{k}") for k in range(4)]
    move += [
        "for p in range(q + n - n % 4, q + n):",
        "    at = o * extent + to_int64(index[p])",
        "    " + row("p", "at"),
    ]
    zeros = _zeros(str(kind), "args[0] * extent * inner")
    return _everywhere("scatter_zeros", str(kind), index_dtype, zeros, move, row("p + c", "at"))


def unpool_source(dtype: Any, index_dtype: Any) -> str:
    """Return the kernel that puts elements among zeros; of several for one place the last one stays."""
    kind = np.dtype(dtype)
    zeros = _zeros(str(kind), "args[0] * extent * inner")
    move = ["for p in range(q, q + n):", "    out[o * extent + to_int64(index[p])] = x[p]"]
    return _everywhere("unpool", str(kind), index_dtype, zeros, move, "out[at] = x[p + c]")


def take_source(dtype: Any, index_dtype: Any) -> str:
    """Return the kernel of torch.index_select."""
    shared = in_parts(4, "count", "(count * inner if args[0] == 1 else 0)", "x")
    return _moving("take", bits_of(dtype), index_dtype, statement="out[i] = x[at]", shared=shared)


def put_zeros_source(dtype: Any, index_dtype: Any) -> str:
    """Return the kernel of torch.index_add into zeros."""
    kind = np.dtype(dtype)
    zeros = _zeros(str(kind), "args[0] * extent * inner")
    return _moving("put_zeros", str(kind), index_dtype, f"out[at] = {_total(kind, 'out[at]', 'x[i]')}", zeros)


def _total(kind: np.dtype[Any], a: str, b: str) -> str:
    return f"{a} + {b}" if kind.kind == "f" else f"to_{kind}({a} + {b})"


def _head(name: str, kind: str, index_dtype: Any) -> str:
    """The lines with which a kernel of (outer, count, inner) and (outer, extent, inner) begins."""
    return f"""def {name}(bufs, args):
    x = buffer(bufs, 0, {kind})
    index = buffer(bufs, 1, {np.dtype(index_dtype)})
    out = buffer(bufs, 2, {kind})
    extent = args[1]
    inner = args[2]
    count = args[3]
"""


def _everywhere(name: str, kind: str, index_dtype: Any, first: str, move: list[str], slices: str) -> str:
    """Loops in which element i of (outer, count, inner) meets element ``at``, whose index has the place i, too.

    Parameters
    ----------
    first : lines before the loops.
    move : lines for the `n` elements from `q` on, of row `o`, where `inner` is 1.
    slices : a line for the element ``p + c`` otherwise.
    """
    moved = "".join(f"{' ' * 20}{line}\n" for line in move)
    wrong = telling("args[0] * count * inner", "extent", " " * 16)
    return f"""{_head(name, kind, index_dtype)}{first}    rows = max(1, {_AT_ONCE} // max(1, count * inner))
    step = max(1, {_AT_ONCE} // max(1, inner))
    for block in range(0, args[0], rows):
        last = min(block + rows, args[0])
        for s in range(0, count, step):
            n = min(step, count - s)
            start = (block * count + s) * inner
            signs = 0
            for i in range(start, start + (last - block) * n * inner):
                a = to_int64(index[i])
                signs |= a | (extent - 1 - a)
            if signs < 0:
{wrong}            single = block if count * inner != 1 else last
            for o in range(single, last):
                q = (o * count + s) * inner
                if inner == 1:
{moved}                else:
                    for j in range(n):
                        p = q + j * inner
                        for c in range(inner):
                            at = (o * extent + to_int64(index[p + c])) * inner + c
                            {slices}
            for p in range(block, single):
                at = p * extent + to_int64(index[p])
                {slices.replace(" + c]", "]")}
    return 0
"""


def _moving(name: str, kind: str, index_dtype: Any, statement: str, first: str = "", shared: str = _ALL) -> str:
    """Loops in which element i of (outer, count, inner) meets element ``at`` of (outer, extent, inner).

    Parameters
    ----------
    shared : lines that set which of `count` are done, from `low` to before `high`.
    """

    def body(i: str, at: str, indent: str) -> str:
        return "".join(f"{indent}{line}\n" for line in (f"i = {i}", f"at = {at}", statement))

    row = body("o * count + j", "o * extent + index[j]", " " * 16)
    slices = body("(o * count + j) * inner + c", "(o * extent + index[j]) * inner + c", " " * 20)
    return f"""{_head(name, kind, index_dtype)}{_check("count", "extent")}{first}{shared}    for o in range(args[0]):
        if inner == 1:
            for j in range(low, high):
{row}        else:
            for j in range(low, high):
                for c in range(inner):
{slices}    return 0
"""


def _check(count: str, extent: str) -> str:
    # No early exit, and no comparison: the signs of all distances to both ends, in a third of the time.
    return f"""    signs = 0
    for i in range({count}):
        a = to_int64(index[i])
        signs |= a | ({extent} - 1 - a)
    if signs < 0:
{telling(count, extent, "        ")}"""


def _zeros(kind: str, count: str) -> str:
    return f"""    for i in range({count}):
        out[i] = {kind}(0)
"""


def pick_source(dtype: Any, index_dtype: Any) -> str:
    """Return the kernel that reads one element per row, as the negative log-likelihood does."""
    kind = bits_of(dtype)
    return f"""def pick(bufs, args):
    x = buffer(bufs, 0, {kind})
    index = buffer(bufs, 1, {np.dtype(index_dtype)})
    out = buffer(bufs, 2, {kind})
    columns = args[1]
{_check("args[0]", "columns")}    for r in range(args[0]):
        out[r] = x[r * columns + index[r]]
    return 0
"""


def spread_source(dtype: Any, index_dtype: Any) -> str:
    """Return the kernel that writes one element per row into zeros: the transpose of ``pick``."""
    kind = bits_of(dtype)
    return f"""def spread(bufs, args):
    g = buffer(bufs, 0, {kind})
    index = buffer(bufs, 1, {np.dtype(index_dtype)})
    out = buffer(bufs, 2, {kind})
    columns = args[1]
{_check("args[0]", "columns")}{_zeros(kind, "args[0] * columns")}    for r in range(args[0]):
        out[r * columns + index[r]] = g[r]
    return 0
"""


COUNTS = """def counts(bufs, args):
    index = buffer(bufs, 0, int64)
    parts = buffer(bufs, 1, int64)
    n = args[0]
    extent = args[1]
    for i in range(4 * extent):
        parts[i] = 0
    for i in range(0, n - 3, 4):
        a = index[i]
        b = extent + index[i + 1]
        c = 2 * extent + index[i + 2]
        d = 3 * extent + index[i + 3]
        parts[a] = parts[a] + 1
        parts[b] = parts[b] + 1
        parts[c] = parts[c] + 1
        parts[d] = parts[d] + 1
    for i in range(n - n % 4, n):
        a = index[i]
        parts[a] = parts[a] + 1
    for i in range(extent):
        parts[i] = parts[i] + parts[extent + i] + parts[2 * extent + i] + parts[3 * extent + i]
    return 0
"""
"""The kernel of how often each int64 in [0, extent) occurs."""


def one_hot_source(dtype: Any, index_dtype: Any) -> str:
    """Return the kernel that marks one class per index, with the one of `dtype`."""
    kind = bits_of(dtype)
    return f"""def one_hot(bufs, args):
    index = buffer(bufs, 0, {np.dtype(index_dtype)})
    out = buffer(bufs, 1, {kind})
    columns = args[1]
{_check("args[0]", "columns")}{_zeros(kind, "args[0] * columns")}    for r in range(args[0]):
        out[r * columns + index[r]] = {kind}({value_bits(1, dtype)})
    return 0
"""


def positions_source() -> str:
    """Return the kernel that writes where a mask, as bytes, holds; no branch depends on an element. Status: how often.

    args: rows, columns, dimensions, how far out has the next position and the next dimension from each other, the sizes
    of all dimensions but the last one. The place of one position more is written to.
    """
    return """def positions(bufs, args):
    x = buffer(bufs, 0, uint8)
    out = buffer(bufs, 1, int64)
    columns = args[1]
    before = args[2] - 1
    step = args[3]
    apart = args[4]
    k = 0
    for r in range(args[0]):
        first = k
        last = before * apart
        for c in range(columns):
            out[last + k * step] = c
            k += to_int64(x[r * columns + c] != 0)
        rest = r
        for e in range(before):
            d = before - 1 - e
            size = args[5 + d]
            here = rest % size
            rest = rest // size
            for j in range(first, k):
                out[d * apart + j * step] = here
    return k
"""
