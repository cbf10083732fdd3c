"""Kernels that sum a function of every element without storing it: the eager engine runs compositions by them.

==============  ======================  =======  ===============================================
kernel          buffers                 args     result
==============  ======================  =======  ===============================================
``x_rows``      x, (m,) out, scratch    R, C     out[r] = S(f(x[r, :], m[r]))
``x_cols``      x, (m,) out, scratch    B, R, C  out[b, c] = S(f(x[b, :, c], m[b, c]))
==============  ======================  =======  ===============================================

f is a name in `ELEMENTS`, S that of `common.kernels.arrays.sums`. f is applied element by element, as the ops that it
is made of would do, and S keeps its order, so the bits are those of the composition; what is saved is the memory
between its ops (benchmarks/reduction_times.py). Scratch: `scratch` elements of the dtype of the result. Status: always
0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from common.compiler.loop_ir import STEP, Let, Loop, Place, Store, text
from common.core.numerics import BLOCK, LANES
from common.kernels.arrays.copying import buffer_dtype
from common.kernels.arrays.shared_parts import in_parts
from common.kernels.arrays.sums import TILE, sum_cols_scratch, whole_columns

__all__ = [
    "ELEMENTS", "OF_TWO", "PATTERNS", "REDUCTION", "TOGETHER", "add_rows", "channels_source", "cols_source",
    "expression_columns_source", "expression_source", "neighbours_source", "reads_in_row", "rows_source", "scratch",
]  # fmt: skip

#: The summand of an element v, or of v and the value m of its row or column.
ELEMENTS = {
    "squares": "v * v",
    "magnitudes": "abs(v)",
    "cubes": "abs(v) * abs(v) * abs(v)",
    "numbers": "where(isnan(v), {dtype}(0), v)",
    "deviations": "(v - m) * (v - m)",
    "exponentials": "exp(v - m)",
    "wholes": "to_int64(v)",
}

REDUCTION = "sum"
"""The reduction that joins the functions' values."""

OF_TWO = frozenset(("deviations", "exponentials"))
"""Functions of an element and of the value of its row or column."""

IN_LANES: dict[str, Any] = {
    "squares": ("mul", "v", "v"),
    "magnitudes": ("abs", "v"),
    "cubes": ("mul", ("mul", ("abs", "v"), ("abs", "v")), ("abs", "v")),
    "numbers": ("where", ("isnan", "v"), 0, "v"),
}
"""Functions of which `common.kernels.arrays.fold_rows` has sums, and the ops that make them."""

PATTERNS: dict[str, Any] = {
    **IN_LANES,
    "deviations": ("mul", ("sub", "v", "m"), ("sub", "v", "m")),
    "exponentials": ("exp", ("sub", "v", "m")),
}
"""The ops that make functions of an element v, and of the value m of its row or column."""

_SHIFT = BLOCK.bit_length() - 1
TOGETHER = 4


def scratch(element: str, rows: Any, columns: Any) -> Any:
    """Elements of scratch of ``x_cols``, and with no columns of ``x_rows``, of rows of that many elements."""
    if isinstance(columns, int) and columns == 0:
        return LANES + -(-rows // BLOCK)
    return sum_cols_scratch(rows, columns) + (LANES * min(columns, TILE) if element in OF_TWO else 0)


def _head(name: str, element: str, dtype: np.dtype[Any], out: np.dtype[Any]) -> tuple[str, str]:
    """The first lines, and the expression of f."""
    operands = [f"x = buffer(bufs, 0, {buffer_dtype(dtype)})"]
    if element in OF_TWO:
        operands.append(f"means = buffer(bufs, 1, {dtype})")
    operands += [f"{b} = buffer(bufs, {len(operands) + i}, {out})" for i, b in enumerate(("out", "acc"))]
    return "\n    ".join([f"def {name}(bufs, args):", *operands]), ELEMENTS[element].format(dtype=dtype)


def rows_source(element: str, dtype: Any, out: Any) -> str:
    """Return the kernel ``out[r] = S(f(x[r, :]))``.

    Elements go into the lanes at once, where machine code for f exists by that.
    """
    head, f = _head(f"{element}_rows", element, np.dtype(dtype), np.dtype(out))
    mean = "m = means[r]" if element in OF_TWO else "pass"
    if element in IN_LANES:
        return f"""{head}
    for r in range(args[0]):
        out[r] = block_{element}(x, r * args[1], args[1])
    return 0
"""
    rows = _rows([Let("v", Place("x", "p", "c"))], f, f"{np.dtype(out)}(0)", mean)
    return f"{head}\n{rows}"


def _rows(element: Sequence[Let], f: str, zero: str, before: str = "pass") -> str:
    """The rest of a kernel of rows.

    Parameters
    ----------
    element : reads what f names in column k + c of row r, at p + c.
    zero : in the dtype of the sums.
    before : a line ahead of a row.
    """
    own = f"acc[c & {LANES - 1}]"
    return f"""    columns = args[1]
    blocks = (columns + {BLOCK - 1}) >> {_SHIFT}
    wide()
    for r in range(args[0]):
        {before}
        for k in range(0, columns, {BLOCK}):
            p = r * columns + k
            for c in range({LANES}):
                acc[c] = {zero}
            for c in range(min({BLOCK}, columns - k)):
{text(element, " " * 16)}
                {own} = {own} + {f}
            acc[{LANES} + (k >> {_SHIFT})] = block_sum(acc, 0, {LANES})
        total = acc[{LANES}]
        if blocks != 1:
            total = block_sum(acc, {LANES}, blocks)
        out[r] = total
    return 0
"""


def neighbours_source(dtype: Any) -> str:
    """Return the kernel ``out[r] = S((x[r, 1:] + x[r, :-1]) / 2)``, whose C is one less than the elements of a row."""
    kind = np.dtype(dtype)
    reads = [Let("v", Place("x", "p", "c")), Let("w", Place("x", "p + 1", "c"))]
    rows = _rows(reads, f"(w + v) / {kind}(2)", f"{kind}(0)").replace("r * columns", "r * (columns + 1)")
    return f"{_head('neighbours', 'squares', kind, kind)[0]}\n{rows}"


def expression_source(body: Sequence[Let], dtype: Any, classes: str) -> str:
    """Return the kernel ``out[r] = S(f(x0[r, :], x1[r, :], ...))`` of an expression.

    Parameters
    ----------
    body : assignments to ``t0``, ``t1``, ... of elements ``x0``, ...; the last one is summed.
    classes : per operand "f" (all elements), "r" (one per row), "c" (one per column) or "s" (one).
    """
    kind = np.dtype(dtype)
    place = {"f": ("p", "c"), "r": ("", "r"), "c": ("k", "c"), "s": ("", "")}
    reads = [Let(f"x{i}", Place(f"b{i}", *place[k])) for i, k in enumerate(classes)]
    return f"""{_expression_head("expression_rows", len(classes), kind)}
{_rows([*reads, *body], f"t{len(body) - 1}", f"{kind}(0)")}"""


_WHOLE_BLOCKS = f"""
                while held == 0 and count > most and start + {BLOCK} <= columns:
                    acc[blocks] = block_sum(b0, at + start, {BLOCK})
                    blocks += 1
                    start += {BLOCK}"""
"""Blocks that lie side by side are summed where they are."""


def channels_source(body: Sequence[Let], dtype: Any, classes: str) -> str:
    """Return the kernel ``out[p] = S(f(x0[:, p, :], x1[:, p, :], ...))`` of an expression, see `expression_source`.

    The elements of a channel are written into scratch in their order, block by block of many, and summed while they lie
    in the cache; then the sums of the blocks are. Args: how many q, p and columns, and that of
    `common.kernels.arrays.shared_parts`; each part has scratch of its own.

    Parameters
    ----------
    classes : per operand "f" (all elements), "r" (one per row of the last dimension), "c" (one per column of it), "p"
        (one per channel), "s" (one), and further ones of `common.evaluate.kernels.loop_source`.
    """
    place = {
        "f": ("at", "c"), "r": ("", "q * channels + p"), "c": ("", "c"), "p": ("", "p"), "s": ("", ""), "h": ("", "q"),
        "m": ("to", "c"), "k": ("p * columns", "c"),
    }  # fmt: skip
    reads = [Let(f"x{i}", Place(f"b{i}", *place[k])) for i, k in enumerate(classes)]
    direct = _WHOLE_BLOCKS if classes == "f" and [str(let) for let in body] == ["t0 = x0"] else ""
    return f"""{_expression_head("expression_channels", len(classes), np.dtype(dtype))}
    channels = args[1]
    columns = args[2]
{in_parts(3, "args[1]", f"args[1] * args[0] * max(columns, {LANES})", "out")}    wide()
    count = args[0] * columns
    own = part * count
    most = count if count <= {2 * BLOCK} else {BLOCK}
    for p in range(low, high):
        held = 0
        blocks = own + most
        for q in range(args[0]):
            at = (q * channels + p) * columns
            to = q * columns
            start = 0
            while start < columns:{direct}
                stop = min(columns, start + most - held)
                line = own + held - start
                for c in range(start, stop):
{text([*reads, *body], " " * 20)}
                    acc[line + c] = {body[-1].name}
                held += stop - start
                start = stop
                if held == most and count > most:
                    acc[blocks] = block_sum(acc, own, held)
                    blocks += 1
                    held = 0
        if held > 0 and count > most:
            acc[blocks] = block_sum(acc, own, held)
            blocks += 1
        if count > most:
            out[p] = block_sum(acc, own + most, blocks - own - most)
        else:
            out[p] = block_sum(acc, own, count)
    return 0
"""


def cols_source(element: str, dtype: Any, out: Any) -> str:
    """Return the kernel ``out[b, c] = S(f(x[b, :, c]))``.

    Few rows of functions of which machine code exists are summed without accumulators in memory, see
    `common.kernels.arrays.fold_columns`.
    """
    head, f = _head(f"{element}_cols", element, np.dtype(dtype), np.dtype(out))
    if element in IN_LANES:
        head += whole_columns(np.dtype(dtype), element)
    of_two = element in OF_TWO
    reads = lambda k: [Let("v", Place("x", f"p{k}", "c")), *[Let("m", "acc[c]")] * of_two]  # noqa: E731
    return _columns(head, lambda _: [], reads, f, means=of_two, together=element != "exponentials")


def expression_columns_source(body: Sequence[Let], dtype: Any, classes: str) -> str:
    """Return the kernel ``out[c] = S(f(x0[:, c], x1[:, c], ...))`` of an expression, see `expression_source`.

    Parameters
    ----------
    classes : per operand "f", "r", "c" or "s".
    """
    head = _expression_head("expression_cols", len(classes), np.dtype(dtype))
    operands = list(enumerate(classes))

    def before(k: int) -> list[Let]:
        once = [Let(f"x{i}", Place(f"b{i}")) for i, letter in operands if letter == "s" and k == 0]
        return [*once, *(Let(f"x{i}r{k}", Place(f"b{i}", f"r{k}")) for i, letter in operands if letter == "r")]

    def element(k: int) -> list[Let]:
        return [*reads_in_row(operands, k, "c0"), *body]

    whole = not set(classes) & {"r", "c"}
    return _columns(head, before, element, f"t{len(body) - 1}", whole=whole)


def _expression_head(name: str, inputs: int, kind: np.dtype[Any]) -> str:
    """The first lines of a kernel of an expression: inputs b0, b1, ..., out and acc."""
    names = [*(f"b{i}" for i in range(inputs)), "out", "acc"]
    buffers = [Let(each, f"buffer(bufs, {i}, {kind})") for i, each in enumerate(names)]
    return f"def {name}(bufs, args):\n{text(buffers, STEP)}"


def reads_in_row(operands: Iterable[tuple[int, str]], k: int, start: str = "") -> list[Let]:
    """Statements that name element c of row ``r{k}`` of inputs with their classes; columns begin at `start`."""
    places: dict[str, Any] = {"f": lambda i: Place(f"b{i}", f"p{k}", "c"), "r": lambda i: f"x{i}r{k}"}
    places["c"] = lambda i: Place(f"b{i}", start, "c")
    return [Let(f"x{i}", places[letter](i)) for i, letter in operands if letter != "s"]


def _columns(
    head: str,
    before: Callable[[int], list[Let]],
    element: Callable[[int], list[Let]],
    f: str,
    means: bool = False,
    together: bool = True,
    whole: bool = True,
) -> str:
    """The rest of a kernel of columns.

    Where a tile is whole rows, the LANES rows of a group lie side by side in x and in the accumulators, and one loop
    runs over all of them: a vector that is not full costs as much as a full one, and exponentials are dear.

    Parameters
    ----------
    before : ``before(k)``: statements ahead of a loop, for row ``r{k}`` of those that it reads.
    element : ``element(k)``: statements that read what f names in the row at ``p{k}``.
    means : whether the means of a tile are wanted side by side once for every row of a group; at the start of acc.
    together : whether rows of equal lane are added several at a time; f may cost more than the accumulators do.
    whole : whether one loop may run over several rows; not if f needs to know in which row or column it is.
    """
    count = TOGETHER if together else 1
    spread = """
            for k in range(min(group, rows)):
                for c in range(width):
                    acc[k * width + c] = means[o + c]"""
    return f"""{head}
    rows = args[1]
    columns = args[2]
    group = {f"{LANES} if columns <= {TILE} else 1" if whole else 1}
    at = {f"{LANES} * min(columns, {TILE})" if means else "0"}
    wide()
    for b in range(args[0]):
        for c0 in range(0, columns, {TILE}):
            width = min({TILE}, columns - c0)
            o = b * columns + c0{spread if means else ""}
            start_columns(acc, at, width, rows)
            for first in range(0, rows, {BLOCK}):
                if first > 0:
                    carry_columns(acc, at, width, (first >> {_SHIFT}) - 1)
                end = min(rows, first + {BLOCK})
                bulk = end - (end - first) % {LANES * count}
                for part in range(first, bulk, {LANES * count}):
                    for lane in range(0, {LANES}, group):
{text(add_rows([("acc", f)], before, element, "part + lane", "group", count), " " * 24)}
                r = bulk
                while r < end:
                    lane = r & {LANES - 1}
                    taken = min(group, end - r)
{text(add_rows([("acc", f)], before, element, "r", "taken", 1), " " * 20)}
                    r += taken
            finish_columns(acc, at, width, rows, out, o)
    return 0
"""


def add_rows(
    sums: Sequence[tuple[str, str]],
    before: Callable[[int], list[Let]],
    element: Callable[[int], list[Let]],
    row: str,
    rows: str,
    count: int,
) -> list[Any]:
    """Add what is summed of some rows, and of the next ones of the same lanes, to the accumulators of their lanes.

    Parameters
    ----------
    sums : names of accumulators and of what is added to them.
    before, element : see `_columns`.
    """
    own = [Place(acc, "a", "c") for acc, _ in sums]
    lets, body = [Let("a", "at + lane * width")], [Let(f"s{j}", place) for j, place in enumerate(own)]
    for k in range(count):
        lets += [Let(f"r{k}", f"b * rows + {row} + {LANES * k}"), Let(f"p{k}", f"r{k} * columns + c0"), *before(k)]
        body += [*element(k), *(Let(f"s{j}", f"s{j} + {f}") for j, (_, f) in enumerate(sums))]
    return [*lets, Loop("c", f"{rows} * width", [*body, *(Store(place, f"s{j}") for j, place in enumerate(own))])]
