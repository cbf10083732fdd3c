"""Images at places of a grid, and both gradients, without an array per op: the eager engine runs them.

==================  ======================  =====================  ===================================================
kernel              buffers                 args                   result
==================  ======================  =====================  ===================================================
``grid_sampled``    x, grid, out, held      N, C, *sizes, places   the image at each place
``grid_spread``     g, grid, out, held      the same               the gradient of the image
``grid_slopes``     g, x, grid, out, held   the same, `of_sums`    the gradient of the grid
==================  ======================  =====================  ===================================================

Images have two or three dimensions: x is (N, C, *sizes), grid (N, places, 2 or 3), g (N, C, places). The bits are
those of the ops of `common.ops.image.grid_samples`: corners are added up one after the other, and their gradients, each
in the order of the places, from the last corner to the first. Every place is brought inside before an element is read
or written there, also of NaN and infinite ones; no size is 0. held: `scratch` bytes. Status: always 0.
"""

from __future__ import annotations

from functools import reduce
from itertools import product
from math import prod
from typing import Any

from common.core.numerics import BLOCK, LANES
from common.kernels.arrays.sums import sum_cols_scratch

__all__ = ["of_sums", "sampled_source", "scratch", "serves", "slopes_source", "spread_source"]


def _tile(corners: int) -> int:
    """Places whose corners are known at once."""
    return min(512, 2048 // corners)


def _corners(mode: str, n: int) -> list[tuple[int, ...]]:
    """Of each corner whether it is the second one in each dimension."""
    return list(product((0, 1) if mode == "bilinear" else (0,), repeat=n))


def _names(n: int) -> str:
    """The names of the dimensions, those of the grid from the last to the first."""
    return "zyx"[3 - n :]


def serves(padding: str, align: bool, x: tuple[int, ...], grid: tuple[int, ...]) -> bool:
    """Whether there are kernels for these shapes: of images with elements, whose places int32 holds."""
    reflected = padding == "reflection" and align and 1 in x[2:]
    return 0 not in (*x, *grid) and prod(x[2:]) < 1 << 31 and not reflected


def scratch(name: str, dtype: Any, mode: str, ints: tuple[int, ...]) -> int:
    """Bytes of scratch of a kernel."""
    _, channels, *sizes, places = ints
    corners, size = len(_corners(mode, len(sizes))), int(dtype.itemsize)
    if name == "grid_spread":
        return corners * (places * 2 * size + prod(sizes) * size)
    sums = of_sums(channels, mode, len(sizes)) * size if name == "grid_slopes" else 0
    return corners * (_tile(corners) * 2 * size + sums)


def of_sums(channels: int, mode: str, n: int) -> int:
    """The last arg of ``grid_slopes``: elements of scratch of a sum."""
    return int(sum_cols_scratch(channels, _tile(len(_corners(mode, n)))))


def _axis(dtype: Any, mode: str, padding: str, align: bool, axis: str) -> str:
    """Lines of the place in one dimension: its first corner, and the shares of both."""
    d = dtype

    def number(x: float) -> str:
        return f"{d}({x!r})"

    lines = [f"u = add(grid[p + {'xyz'.index(axis)}], {number(1.0)})"]
    if align:
        lines.append(f"u = mul(div(u, {number(2.0)}), last_{axis})")
    else:
        lines.append(f"u = div(sub(mul(u, size_{axis}), {number(1.0)}), {number(2.0)})")
    if padding == "reflection":
        low, span = (0.0, f"last_{axis}") if align else (-0.5, f"size_{axis}")
        lines += [
            f"side_{axis} = sub(u, {number(low)})",
            f"u = abs(side_{axis})",
            f"even_{axis} = eq(fmod(floor(div(u, {span})), {number(2.0)}), {number(0.0)})",
            f"u = fmod(u, {span})",
            f"u = add(where(even_{axis}, u, sub({span}, u)), {number(low)})",
        ]
    if padding != "zeros":
        lines += [
            f"above_{axis} = ge(u, {number(0.0)})",
            f"u = clamp_min(u, {number(0.0)})",
            f"below_{axis} = le(u, last_{axis})",
            f"u = clamp_max(u, last_{axis})",
        ]
    corners = [f"{axis}0"]
    if mode == "nearest":
        lines += [f"{axis}0 = round(u)", f"share_{axis}0 = sub({number(1.0)}, mul({axis}0, {number(0.0)}))"]
    else:
        lines += [
            f"{axis}0 = floor(u)",
            f"{axis}1 = add({axis}0, {number(1.0)})",
            f"share_{axis}1 = sub(u, {axis}0)",
            f"share_{axis}0 = sub({number(1.0)}, share_{axis}1)",
        ]
        corners.append(f"{axis}1")
    for corner in corners:
        lines += [
            f"inside_{corner} = logical_and(ge({corner}, {number(0.0)}), le({corner}, last_{axis}))",
            f"at_{corner} = clamp_max(clamp_min(to_int32({corner}), int32(0)), end_{axis})",
        ]
    return "\n".join(lines)


def _head(name: str, dtype: Any, operands: str, n: int) -> str:
    names, axes = [*operands.split(), "out", "held"], _names(n)
    lines = [f"{x} = buffer(bufs, {i}, {dtype})" for i, x in enumerate(names)]
    lines += [f"places = buffer(bufs, {len(names) - 1}, int32)", "channels = args[1]", f"count = args[{n + 2}]"]
    for i, axis in enumerate(axes):
        lines += [f"size = args[{i + 2}]", f"size_{axis} = to_{dtype}(size)", f"last_{axis} = to_{dtype}(size - 1)"]
        lines += [f"end_{axis} = to_int32(size - 1)", f"row_{axis} = to_int32(size)"]
    lines += [f"volume = {' * '.join(f'args[{i + 2}]' for i in range(n))}", "wide()"]
    return f"def {name}(bufs, args):\n{_indented(chr(10).join(lines), 4)}\n"


def _indented(text: str, by: int) -> str:
    return "\n".join(" " * by + line for line in text.splitlines())


def _axes(dtype: Any, mode: str, padding: str, align: bool, n: int) -> str:
    """Lines of the place whose grid begins at p."""
    return "\n".join(_axis(dtype, mode, padding, align, axis) for axis in _names(n))


def _each(what: str, names: str, corner: tuple[int, ...], joined: str = "mul") -> str:
    """The names of what some dimensions give a corner, joined from the first to the last."""
    return reduce(lambda a, b: f"{joined}({a}, {b})", [f"{what}_{axis}{k}" for axis, k in zip(names, corner)])


def _corner_lines(dtype: Any, mode: str, padding: str, align: bool, n: int, many: str, weights: str) -> str:
    """Lines that write place j of each of `many` corners in the image, and its weights from `weights` on, if any."""
    lines, names = [_axes(dtype, mode, padding, align, n)], _names(n)
    for k, corner in enumerate(_corners(mode, n)):
        at = [f"at_{axis}{second}" for axis, second in zip(names, corner, strict=True)]
        place = reduce(lambda a, b: f"add(mul({a}, row_{b[3]}), {b})", at)
        lines.append(f"places[{k} * {many} + j] = {place}")
        if weights:
            good, share = _each("inside", names, corner, "logical_and"), _each("share", names, corner)
            lines.append(f"held[{weights} + {k} * {many} + j] = where({good}, {share}, {dtype}(0.0))")
    return "\n".join(lines)


def sampled_source(dtype: Any, mode: str, padding: str, align: bool, n: int) -> str:
    """Return the kernel of images of `n` dimensions at places."""
    corners = range(len(_corners(mode, n)))
    tile = _tile(len(corners))
    start = len(corners) * tile
    total = ""
    for k in corners:
        part = f"mul(x[q + to_int64(places[{k * tile} + j])], held[{start + k * tile} + j])"
        total = f"add({total}, {part})" if total else part
    return f"""{_head("grid_sampled", dtype, "x grid", n)}
    for n in range(args[0]):
        for first in range(0, count, {tile}):
            width = min({tile}, count - first)
            for j in range(width):
                p = (n * count + first + j) * {n}
{_indented(_corner_lines(dtype, mode, padding, align, n, str(tile), str(start)), 16)}
            for c in range(channels):
                q = (n * channels + c) * volume
                o = (n * channels + c) * count + first
                for j in range(width):
                    out[o + j] = {total}
    return 0
"""


def spread_source(dtype: Any, mode: str, padding: str, align: bool, n: int) -> str:
    """Return the kernel of the gradient of the image, which has `n` dimensions."""
    corners = len(_corners(mode, n))
    others = range(corners - 1)
    planes = "\n".join(f"plane{k} = weights + {corners} * count + {k} * volume" for k in others)
    zeros = ["out[q + e] = {0}(0.0)", *(f"held[plane{k} + e] = {{0}}(0.0)" for k in others)]
    adds = ["v = g[o + j]", f"at = q + to_int64(places[{corners - 1} * count + j])"]
    adds.append(f"out[at] = add(out[at], mul(v, held[weights + {corners - 1} * count + j]))")
    for k in others:
        adds.append(f"at{k} = plane{k} + to_int64(places[{k} * count + j])")
        adds.append(f"held[at{k}] = add(held[at{k}], mul(v, held[weights + {k} * count + j]))")
    total = "out[q + e]"
    for k in reversed(others):
        total = f"add({total}, held[plane{k} + e])"
    joined = f"""
            for e in range(volume):
                out[q + e] = {total}""" if corners > 1 else ""  # fmt: skip
    return f"""{_head("grid_spread", dtype, "g grid", n)}
    weights = {corners} * count
{_indented(planes, 4)}
    for n in range(args[0]):
        for j in range(count):
            p = (n * count + j) * {n}
{_indented(_corner_lines(dtype, mode, padding, align, n, "count", "weights"), 12)}
        for c in range(channels):
            q = (n * channels + c) * volume
            o = (n * channels + c) * count
            for e in range(volume):
{_indented(chr(10).join(zeros).format(dtype), 16)}
            for j in range(count):
{_indented(chr(10).join(adds), 16)}{joined}
    return 0
"""


def _slope(dtype: Any, padding: str, align: bool, axis: str) -> str:
    """Lines that carry the gradient of a place to that of the grid."""
    zero = f"{dtype}(0.0)"
    lines = []
    if padding != "zeros":
        lines += [f"s = where(below_{axis}, s, {zero})", f"s = where(above_{axis}, s, {zero})"]
    if padding == "reflection":
        lines.append(f"s = add(where(even_{axis}, s, {zero}), neg(where(even_{axis}, {zero}, s)))")
        lines.append(f"s = mul(s, sign(side_{axis}))")
    if align:
        lines.append(f"s = div(mul(s, last_{axis}), {dtype}(2.0))")
    else:
        lines.append(f"s = mul(div(s, {dtype}(2.0)), size_{axis})")
    lines.append(f"out[p + {'xyz'.index(axis)}] = add(s, {zero})")
    return "\n".join(lines)


def _start(dtype: Any, n: int, d: int) -> str:
    """Lines of the gradient of how far a place is behind its first corner in dimension d."""
    names, halves = _names(n), []
    for second in (1, 0):
        parts = []
        for corner in reversed(_corners("bilinear", n)):
            if corner[d] == second:
                factors = [f"share_{names[i]}{corner[i]}" for i in range(n - 1, d, -1)]
                factors += [_each("share", names, corner[:d])] if d else []
                parts.append(reduce(lambda a, b: f"mul({a}, {b})", factors, f"g{_digits(corner)}"))
        halves.append(reduce(lambda a, b: f"add({a}, {b})", parts))
    return f"s = add(add({halves[0]}, neg({halves[1]})), {dtype}(0.0))"


def _digits(corner: tuple[int, ...]) -> str:
    return "".join(map(str, corner))


def slopes_source(dtype: Any, mode: str, padding: str, align: bool, n: int) -> str:
    """Return the kernel of the gradient of the grid of images of `n` dimensions; that of nearest places is 0."""
    zero, corners = f"{dtype}(0.0)", _corners(mode, n)
    tile = _tile(len(corners))
    sums = len(corners) * tile
    totals = found = offsets = ""
    if mode == "bilinear":
        each = [f"acc{k}" for k in range(len(corners))]
        offsets = "".join(f"    {acc} = {2 * sums} + {k} * args[{n + 3}]\n" for k, acc in enumerate(each))
        starts_of = "\n".join(f"start_columns(held, {acc}, width, channels)" for acc in each)
        carries = "\n".join(f"carry_columns(held, {acc}, width, (c >> 10) - 1)" for acc in each)
        adds = "\n".join(
            f"held[{acc} + lane + j] = add(held[{acc} + lane + j], mul(v, x[q + to_int64(places[{k * tile} + j])]))"
            for k, acc in enumerate(each)
        )
        ends = "\n".join(
            f"finish_columns(held, {acc}, width, channels, held, {sums + k * tile})" for k, acc in enumerate(each)
        )
        totals = f"""
            for j in range(width):
                p = (n * count + first + j) * {n}
{_indented(_corner_lines(dtype, mode, padding, align, n, str(tile), ""), 16)}
{_indented(starts_of, 12)}
            for c in range(channels):
                if c & {BLOCK - 1} == 0 and c > 0:
{_indented(carries, 20)}
                lane = (c & {LANES - 1}) * width
                q = (n * channels + c) * volume
                o = (n * channels + c) * count + first
                for j in range(width):
                    v = g[o + j]
{_indented(adds, 20)}
{_indented(ends, 12)}"""
        found = "\n".join(
            f"g{_digits(corner)} = where({_each('inside', _names(n), corner, 'logical_and')}, "
            f"held[{sums + k * tile} + j], {zero})"
            for k, corner in enumerate(corners)
        )
    slopes = []
    for d, axis in enumerate(_names(n)):
        slopes += [f"s = {zero}" if mode == "nearest" else _start(dtype, n, d), _slope(dtype, padding, align, axis)]
    return f"""{_head("grid_slopes", dtype, "g x grid", n)}{offsets}
    for n in range(args[0]):
        for first in range(0, count, {tile}):
            width = min({tile}, count - first){totals}
            for j in range(width):
                p = (n * count + first + j) * {n}
{_indented(_axes(dtype, mode, padding, align, n), 16)}
{_indented(found, 16)}
{_indented(chr(10).join(slopes), 16)}
    return 0
"""
