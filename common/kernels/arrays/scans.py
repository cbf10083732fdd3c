"""Kernels that go along one dimension and keep every partial result.

x is (outer, n, inner), C-contiguous, and a scan runs along the middle; i - 1 is the element before in its direction.

===============  =================  ============================================================================
kernel           buffers            result
===============  =================  ============================================================================
``cumsum``       x, out, acc        y[i] = y[i-1] + x[i], from +0.0
``cumprod``      x, out, acc        y[i] = y[i-1] * x[i], from 1
``recurrence``   a, b, out, acc     y[i] = b[i] + a[i] * y[i-1], y[-1] = 0; with `shifted` a[i-1] for a[i]
``delay``        x, out             y[i] = x[i-1], y[0] = fill
``cummax``       x, y, out, acc     max(x[..i]) and its last place; once there is a NaN, the last NaN
``cummin``       x, y, out, acc     likewise of the minimum
===============  =================  ============================================================================

All take outer, n, inner, then 0 or 1: from the last element to the first. `recurrence` and `delay` take a further
number: `shifted`, and `fill`. `acc` is scratch of `accumulators` bytes. Status: always 0.

The order is sequential. float32 is accumulated in float64 and every result is rounded once; float64 in itself,
integers (int64) wrap. A product and a sum of `recurrence` are two roundings.

Elements that lie side by side, and up to `TOGETHER` rows, go on at the same time: their chains are independent, so no
bit depends on it, and the latency of one addition is hidden behind the others (benchmarks/reduction_times.py).
"""

from __future__ import annotations

from textwrap import indent
from typing import Any

import numpy as np

from common.kernels.arrays.arg_extremes import key_dtype
from common.kernels.arrays.copying import buffer_dtype

__all__ = [
    "accumulators", "cummax_source", "cummin_source", "cumprod_source", "cumsum_source", "delay_source",
    "recurrence_source", "running_position", "scan_oracle",
]  # fmt: skip

TOGETHER = 8
"""Rows whose chains run side by side."""

STRETCH = 32
"""Elements of a row that are searched at once for a new extreme."""

TILE = 512
"""Columns that are carried together; their accumulators stay in the first-level cache."""


def _held(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in which partial results are held."""
    return np.dtype(np.float64) if dtype.kind == "f" else dtype


def accumulators() -> int:
    """Return the bytes of scratch that a scan needs."""
    return TILE * 8


def cumsum_source(dtype: Any) -> str:
    """Return the kernel of running sums."""
    return _scan_source("cumsum", np.dtype(dtype), ("x",), "{s} + {x}", 0)


def cumprod_source(dtype: Any) -> str:
    """Return the kernel of running products."""
    return _scan_source("cumprod", np.dtype(dtype), ("x",), "{s} * {x}", 1)


def recurrence_source(dtype: Any) -> str:
    """Return the kernel of linear recurrences of first order."""
    return _scan_source("recurrence", np.dtype(dtype), ("a", "b"), "{b} + {a} * {s}", 0)


def _scan_source(name: str, dtype: np.dtype[Any], operands: tuple[str, ...], step: str, start: int) -> str:
    held = _held(dtype)
    begins = "{b}" if "a" in operands else step  # before the first element a weight may have no place

    def value(formula: str, place: str, before: str) -> str:
        """The next partial result at a place."""
        places = {o: f"{place} - shift" if o == "a" else place for o in operands}
        loads = {o: f"{o}[{where}]" for o, where in places.items()}
        return formula.format(s=before, **{o: x if held == dtype else f"to_{held}({x})" for o, x in loads.items()})

    def store(place: str, result: str) -> str:
        return f"out[{place}] = {result if held == dtype else f'to_{dtype}({result})'}"

    def chains(count: int) -> str:
        rows = range(count)
        head = [f"p{k} = (o + {k}) * n + last * reverse" for k in rows]
        head += [f"s{k} = {value(begins, f'p{k}', f'{held}({start})')}" for k in rows]
        head += [store(f"p{k}", f"s{k}") for k in rows]
        body = [f"p{k} += way" for k in rows]
        body += [f"s{k} = {value(step, f'p{k}', f's{k}')}" for k in rows]
        body += [store(f"p{k}", f"s{k}") for k in rows]
        lines = [*head, "for i in range(1, n):", *(f"    {line}" for line in body), f"o += {count}"]
        return f"        while o + {count} <= outer:\n" + "\n".join(f"            {line}" for line in lines)

    buffers = [f"    {o} = buffer(bufs, {i}, {dtype})" for i, o in enumerate((*operands, "out"))]
    return f"""def {name}(bufs, args):
{chr(10).join(buffers)}
    acc = buffer(bufs, {len(buffers)}, {held})
    outer = args[0]
    n = args[1]
    inner = args[2]
    reverse = args[3]
    last = n - 1
    way = (1 - 2 * reverse) * inner
    shift = way * {"args[4]" if "a" in operands else 0}
    if n < 1:
        return 0
    if inner == 1:
        o = 0
{chains(TOGETHER)}
{chains(1)}
        return 0
    wide()
    for o in range(outer):
        for c0 in range(0, inner, {TILE}):
            width = min({TILE}, inner - c0)
            p = (o * n + last * reverse) * inner + c0
            for c in range(width):
                s = {value(begins, "p + c", f"{held}({start})")}
                acc[c] = s
                {store("p + c", "s")}
            for i in range(1, n):
                p += way
                for c in range(width):
                    s = {value(step, "p + c", "acc[c]")}
                    acc[c] = s
                    {store("p + c", "s")}
    return 0
"""


def delay_source(dtype: Any) -> str:
    """Return the kernel that moves every element one place on; exact."""
    return f"""def delay(bufs, args):
    x = buffer(bufs, 0, {np.dtype(dtype)})
    out = buffer(bufs, 1, {np.dtype(dtype)})
    outer = args[0]
    n = args[1]
    inner = args[2]
    reverse = args[3]
    fill = to_{np.dtype(dtype)}(args[4])
    if n < 1:
        return 0
    moved = (n - 1) * inner
    for o in range(outer):
        p = o * n * inner
        to = p + (1 - reverse) * inner
        source = p + reverse * inner
        for c in range(moved):
            out[to + c] = x[source + c]
        edge = p + reverse * moved
        for c in range(inner):
            out[edge + c] = fill
    return 0
"""


def cummax_source(dtype: Any) -> str:
    """Return the kernel of positions of running maxima."""
    return _position_source("cummax", np.dtype(dtype), "rising_key")


def cummin_source(dtype: Any) -> str:
    """Return the kernel of positions of running minima."""
    return _position_source("cummin", np.dtype(dtype), "falling_key")


def _position_source(name: str, dtype: np.dtype[Any], key: str) -> str:
    """Along a row the next extreme waits for the last one; a stretch without a new one is filled without waiting."""
    whole = key_dtype(dtype)
    bulk = "0" if dtype == np.bool_ else f"n - n % {STRETCH}"  # among few values most are extremes again
    step = f"""new = {key}(x[q + k])
                taken = new >= best
                best = where(taken, new, best)
                value = where(taken, x[q + k], value)
                at = where(taken, first + k, at)
                values[q + k] = value
                out[q + k] = at"""
    return f"""def {name}(bufs, args):
    x = buffer(bufs, 0, {buffer_dtype(dtype)})
    values = buffer(bufs, 1, {buffer_dtype(dtype)})
    out = buffer(bufs, 2, int64)
    keys = buffer(bufs, 3, {key_dtype(dtype)})
    outer = args[0]
    n = args[1]
    inner = args[2]
    if n < 1:
        return 0
    wide()
    if inner == 1:
        for o in range(outer):
            p = o * n
            best = {key}(x[p])
            value = x[p]
            at = 0
            bulk = {bulk}
            for first in range(0, bulk, {STRETCH}):
                q = p + first
                news = {whole}(0)
                for k in range({STRETCH}):
                    news = news | where({key}(x[q + k]) >= best, {whole}(1), {whole}(0))
                if news == 0:
                    for k in range({STRETCH}):
                        values[q + k] = value
                    for k in range({STRETCH}):
                        out[q + k] = at
                else:
                    for k in range({STRETCH}):
                        {indent(step, " " * 8).lstrip()}
            first = bulk
            q = p + first
            for k in range(n - bulk):
                {step}
        return 0
    for o in range(outer):
        for c0 in range(0, inner, {TILE}):
            width = min({TILE}, inner - c0)
            p = o * n * inner + c0
            for c in range(width):
                keys[c] = {key}(x[p + c])
                values[p + c] = x[p + c]
                out[p + c] = 0
            for i in range(1, n):
                p += inner
                for c in range(width):
                    new = {key}(x[p + c])
                    old = keys[c]
                    taken = new >= old
                    keys[c] = where(taken, new, old)
                    values[p + c] = where(taken, x[p + c], values[p - inner + c])
                    out[p + c] = where(taken, i, out[p - inner + c])
    return 0
"""


def scan_oracle(name: str, *operands: np.ndarray, dim: int, reverse: bool = False, shifted: bool = False) -> np.ndarray:
    """A running sum, product or recurrence in plain numpy, from the definition."""
    lines = [np.moveaxis(x, dim, 0) for x in operands]
    if reverse:
        lines = [x[::-1] for x in lines]
    x = lines[-1]
    held = x.astype(_held(x.dtype))
    out = np.empty_like(x)
    state = np.full(x.shape[1:], int(name == "cumprod"), held.dtype)
    with np.errstate(all="ignore"):
        for i in range(len(x)):
            if name == "recurrence" and i:
                weight = lines[0][i - shifted].astype(held.dtype)
                state = held[i] + weight * state
            elif name == "cumprod":
                state = state * held[i]
            else:
                state = held[i] if name == "recurrence" else state + held[i]
            out[i] = state.astype(x.dtype)
    return np.ascontiguousarray(np.moveaxis(out[::-1] if reverse else out, 0, dim))


def running_position(x: np.ndarray, dim: int, low: bool) -> np.ndarray:
    """Positions of running extremes in plain Python, from the definition."""
    lines = np.moveaxis(x, dim, -1)
    out = np.empty(lines.shape, np.int64)
    for place in np.ndindex(*lines.shape[:-1]):
        best, at = None, 0
        for i, v in enumerate(lines[place].tolist()):
            sign = bool(x.dtype.kind == "f" and np.signbit(v))
            key = (1,) if v != v else (0, -v if low else v, sign is low)
            if best is None or key >= best:
                best, at = key, i
            out[(*place, i)] = at
    return np.ascontiguousarray(np.moveaxis(out, -1, dim))
