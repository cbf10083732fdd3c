"""Kernels that sum a function of every element without storing it: what the eager engine runs for compositions.

==============  ======================  =======  ===============================================
kernel          buffers                 args     result
==============  ======================  =======  ===============================================
``x_rows``      x, (m,) out, scratch    R, C     out[r] = S(f(x[r, :], m[r]))
``x_cols``      x, (m,) out, scratch    B, R, C  out[b, c] = S(f(x[b, :, c], m[b, c]))
==============  ======================  =======  ===============================================

f is a name in `ELEMENTS`, S that of `common.kernels.sums`. f is applied element by element, as the ops that it is made
of would do, and S keeps its order, so the bits are those of the composition; what is saved is the memory between its
ops (benchmarks/reductions.py). Scratch: `scratch` elements of the dtype of the result. Status: always 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import indent
from typing import Any

import numpy as np

from common.kernels.copying import buffer_dtype
from common.kernels.sums import TILE, sum_cols_scratch
from common.numerics import BLOCK, LANES

__all__ = ["ELEMENTS", "cols_source", "expression_columns_source", "expression_source", "rows_source", "scratch"]

#: What is summed, of an element v, or of v and the value m of its row or column.
ELEMENTS = {
    "squares": "v * v",
    "magnitudes": "abs(v)",
    "cubes": "abs(v) * abs(v) * abs(v)",
    "numbers": "where(isnan(v), {dtype}(0), v)",
    "deviations": "(v - m) * (v - m)",
    "exponentials": "exp(v - m)",
    "wholes": "to_int64(v)",
}

OF_TWO = frozenset(("deviations", "exponentials"))
"""Functions of an element and of the value of its row or column."""

IN_LANES: dict[str, Any] = {
    "squares": ("mul", "v", "v"),
    "magnitudes": ("abs", "v"),
    "cubes": ("mul", ("mul", ("abs", "v"), ("abs", "v")), ("abs", "v")),
    "numbers": ("where", ("isnan", "v"), 0, "v"),
}
"""Functions of which `common.kernels.lanes` has sums, and the ops that make them of an element v."""

_SHIFT = BLOCK.bit_length() - 1
_TOGETHER = 4


def scratch(rows: int, columns: int) -> int:
    """Elements of scratch of ``x_cols``, and with no columns of ``x_rows``, of rows of that many elements."""
    return sum_cols_scratch(rows, columns) if columns else BLOCK + -(-rows // BLOCK)


def _head(name: str, element: str, dtype: np.dtype[Any], out: np.dtype[Any]) -> tuple[str, str]:
    """The first lines, and the expression of f."""
    operands = [f"x = buffer(bufs, 0, {buffer_dtype(dtype)})"]
    if element in OF_TWO:
        operands.append(f"means = buffer(bufs, 1, {dtype})")
    operands += [f"{b} = buffer(bufs, {len(operands) + i}, {out})" for i, b in enumerate(("out", "acc"))]
    return "\n    ".join([f"def {name}(bufs, args):", *operands]), ELEMENTS[element].format(dtype=dtype)


def rows_source(element: str, dtype: Any, out: Any) -> str:
    """Return the kernel ``out[r] = S(f(x[r, :]))``.

    Where machine code for f exists, elements go into the lanes at once; else blocks are mapped into the first-level
    cache and summed there.
    """
    head, f = _head(f"{element}_rows", element, np.dtype(dtype), np.dtype(out))
    mean = "m = means[r]" if element in OF_TWO else "pass"
    if element in IN_LANES:
        return f"""{head}
    for r in range(args[0]):
        out[r] = block_{element}(x, r * args[1], args[1])
    return 0
"""
    return f"""{head}
    columns = args[1]
    wide()
    for r in range(args[0]):
        {mean}
        for k in range(0, columns, {BLOCK}):
            n = min({BLOCK}, columns - k)
            p = r * columns + k
            for c in range(n):
                v = x[p + c]
                acc[c] = {f}
            acc[{BLOCK} + (k >> {_SHIFT})] = block_sum(acc, 0, n)
        out[r] = block_sum(acc, {BLOCK}, (columns + {BLOCK - 1}) >> {_SHIFT})
    return 0
"""


def expression_source(body: Sequence[str], dtype: Any, classes: str) -> str:
    """Return the kernel ``out[r] = S(f(x0[r, :], x1[r, :], ...))`` of an expression.

    Parameters
    ----------
    body : assignments to ``t0``, ``t1``, ... of elements ``x0``, ...; the last one is summed.
    classes : per operand "f" (all elements), "r" (one per row), "c" (one per column) or "s" (one).
    """
    kind = np.dtype(dtype)
    buffers = [f"x{i}_ = buffer(bufs, {i}, {kind})" for i in range(len(classes))]
    buffers += [f"{name} = buffer(bufs, {len(classes) + i}, {kind})" for i, name in enumerate(("out", "acc"))]
    place = {"f": "p + c", "r": "r", "c": "k + c", "s": "0"}
    reads = [f"x{i} = x{i}_[{place[k]}]" for i, k in enumerate(classes)]
    return f"""def expression_rows(bufs, args):
{indent(chr(10).join(buffers), " " * 4)}
    columns = args[1]
    wide()
    for r in range(args[0]):
        for k in range(0, columns, {BLOCK}):
            n = min({BLOCK}, columns - k)
            p = r * columns + k
            for c in range(n):
{indent(chr(10).join((*reads, *body)), " " * 16)}
                acc[c] = t{len(body) - 1}
            acc[{BLOCK} + (k >> {_SHIFT})] = block_sum(acc, 0, n)
        out[r] = block_sum(acc, {BLOCK}, (columns + {BLOCK - 1}) >> {_SHIFT})
    return 0
"""


def cols_source(element: str, dtype: Any, out: Any) -> str:
    """Return the kernel ``out[b, c] = S(f(x[b, :, c]))``; rows of equal lane are added `_TOGETHER` at a time."""
    head, f = _head(f"{element}_cols", element, np.dtype(dtype), np.dtype(out))
    mean = "m = means[o + c]" if element in OF_TWO else "pass"
    # exponentials cost more than the accumulators do
    return _columns(head, [mean], lambda p: [f"v = x[{p} + c]"], f, together=element != "exponentials")


def expression_columns_source(body: Sequence[str], dtype: Any, classes: str) -> str:
    """Return the kernel ``out[c] = S(f(x0[:, c], x1[:, c], ...))`` of an expression, see `expression_source`.

    Parameters
    ----------
    classes : per operand "f" or "s".
    """
    kind = np.dtype(dtype)
    buffers = [f"x{i}_ = buffer(bufs, {i}, {kind})" for i in range(len(classes))]
    buffers += [f"{name} = buffer(bufs, {len(classes) + i}, {kind})" for i, name in enumerate(("out", "acc"))]
    head = "\n    ".join(["def expression_cols(bufs, args):", *buffers])
    scalars = [f"x{i} = x{i}_[0]" for i, k in enumerate(classes) if k == "s"]

    def element(p: str) -> list[str]:
        return [*(f"x{i} = x{i}_[{p} + c]" for i, k in enumerate(classes) if k == "f"), *body]

    return _columns(head, scalars, element, f"t{len(body) - 1}")


def _columns(
    head: str, before: Sequence[str], element: Callable[[str], list[str]], f: str, together: bool = True
) -> str:
    """The rest of a kernel of columns; rows of equal lane are added several at a time if `together`."""
    group, several = BLOCK + 1, " " * 24 + "pass"
    if together:
        group = LANES * _TOGETHER
        several = indent(_add_rows(f, before, element, "part + lane", _TOGETHER), " " * 24)
    return f"""{head}
    rows = args[1]
    columns = args[2]
    wide()
    for b in range(args[0]):
        for c0 in range(0, columns, {TILE}):
            width = min({TILE}, columns - c0)
            o = b * columns + c0
            start_columns(acc, 0, width, rows)
            for first in range(0, rows, {BLOCK}):
                if first > 0:
                    carry_columns(acc, 0, width, (first >> {_SHIFT}) - 1)
                end = min(rows, first + {BLOCK})
                bulk = end - (end - first) % {group}
                for part in range(first, bulk, {group}):
                    for lane in range({LANES}):
{several}
                for r in range(bulk, end):
                    lane = r & {LANES - 1}
{indent(_add_rows(f, before, element, "r", 1), " " * 20)}
            finish_columns(acc, 0, width, rows, out, o)
    return 0
"""


def _add_rows(
    f: str, before: Sequence[str], element: Callable[[str], list[str]], row: str, count: int
) -> str:
    """Add f of a row, and of the next ones of the same lane, to the accumulators of its lane.

    Parameters
    ----------
    before : lines for each column.
    element : ``element(p)``: lines that read what f names in the row at p.
    """
    lines = ["a = lane * width", f"p0 = (b * rows + {row}) * columns + c0"]
    lines += [f"p{k} = p{k - 1} + {LANES} * columns" for k in range(1, count)]
    body = [*before, "s = acc[a + c]"]
    for k in range(count):
        body += [*element(f"p{k}"), f"s = s + {f}"]
    lines += ["for c in range(width):", *(f"    {line}" for line in [*body, "acc[a + c] = s"])]
    return "\n".join(lines)
