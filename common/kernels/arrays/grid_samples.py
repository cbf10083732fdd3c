"""Images at places of a grid, and both gradients, without an array per op: the eager engine runs them.

==================  ======================  =====================  ===================================================
kernel              buffers                 args                   result
==================  ======================  =====================  ===================================================
``grid_sampled``    x, grid, out, held      N, C, H, W, places     the image at each place
``grid_spread``     g, grid, out, held      the same               the gradient of the image
``grid_slopes``     g, x, grid, out, held   the same, `of_sums`    the gradient of the grid
==================  ======================  =====================  ===================================================

Images have two dimensions: x is (N, C, H, W), grid (N, places, 2), g (N, C, places). The bits are those of the ops of
`common.ops.image.grid_samples`: corners are added up one after the other, and their gradients, each in the order of the
places, from the last corner to the first. Every place is brought inside before an element is read or written there,
also of NaN and infinite ones; H and W are not 0. held: `scratch` bytes. Status: always 0.
"""

from __future__ import annotations

from typing import Any

from common.core.numerics import BLOCK, LANES
from common.kernels.arrays.sums import sum_cols_scratch

__all__ = ["of_sums", "sampled_source", "scratch", "serves", "slopes_source", "spread_source"]

_TILE = 512
"""Places whose corners are known at once."""
_CORNERS = {"bilinear": ((0, 0), (0, 1), (1, 0), (1, 1)), "nearest": ((0, 0),)}
"""Of each corner whether it is the second one down, and across."""


def serves(padding: str, align: bool, x: tuple[int, ...], grid: tuple[int, ...]) -> bool:
    """Whether there are kernels for these shapes: of images with elements, whose places int32 holds."""
    height, width = x[2:]
    reflected = padding == "reflection" and align and 1 in (height, width)
    return 0 not in (*x, *grid) and height * width < 1 << 31 and not reflected


def scratch(name: str, dtype: Any, mode: str, ints: tuple[int, ...]) -> int:
    """Bytes of scratch of a kernel."""
    _, channels, height, width, places = ints
    corners, size = len(_CORNERS[mode]), int(dtype.itemsize)
    if name == "grid_spread":
        return corners * (places * 2 * size + height * width * size)
    return corners * (_TILE * 2 * size + (of_sums(channels) * size if name == "grid_slopes" else 0))


def of_sums(channels: int) -> int:
    """The last arg of ``grid_slopes``: elements of scratch of a sum."""
    return int(sum_cols_scratch(channels, _TILE))


def _axis(dtype: Any, mode: str, padding: str, align: bool, axis: str) -> str:
    """Lines of the place in one dimension: its first corner, and the shares of both."""
    d = dtype

    def number(x: float) -> str:
        return f"{d}({x!r})"

    lines = [f"u = add(grid[p + {'1' if axis == 'y' else '0'}], {number(1.0)})"]
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


def _head(name: str, dtype: Any, operands: str, mode: str) -> str:
    names = [*operands.split(), "out", "held"]
    buffers = "\n".join(f"    {x} = buffer(bufs, {i}, {dtype})" for i, x in enumerate(names))
    return f"""def {name}(bufs, args):
{buffers}
    places = buffer(bufs, {len(names) - 1}, int32)
    channels = args[1]
    h = args[2]
    w = args[3]
    count = args[4]
    size_y = to_{dtype}(h)
    size_x = to_{dtype}(w)
    last_y = to_{dtype}(h - 1)
    last_x = to_{dtype}(w - 1)
    end_y = to_int32(h - 1)
    end_x = to_int32(w - 1)
    row = to_int32(w)
    wide()
"""


def _indented(text: str, by: int) -> str:
    return "\n".join(" " * by + line for line in text.splitlines())


def _axes(dtype: Any, mode: str, padding: str, align: bool) -> str:
    """Lines of the place whose grid begins at p."""
    return "\n".join(_axis(dtype, mode, padding, align, axis) for axis in "yx")


def _corner_lines(dtype: Any, mode: str, padding: str, align: bool, many: str, weights: str) -> str:
    """Lines that write place j of each of `many` corners in the image, and its weights from `weights` on, if any."""
    lines = [_axes(dtype, mode, padding, align)]
    for k, (y, x) in enumerate(_CORNERS[mode]):
        lines.append(f"places[{k} * {many} + j] = add(mul(at_y{y}, row), at_x{x})")
        if weights:
            good, share = f"logical_and(inside_y{y}, inside_x{x})", f"mul(share_y{y}, share_x{x})"
            lines.append(f"held[{weights} + {k} * {many} + j] = where({good}, {share}, {dtype}(0.0))")
    return "\n".join(lines)


def sampled_source(dtype: Any, mode: str, padding: str, align: bool) -> str:
    """Return the kernel of images at places."""
    corners = range(len(_CORNERS[mode]))
    start = len(corners) * _TILE
    total = ""
    for k in corners:
        part = f"mul(x[q + to_int64(places[{k * _TILE} + j])], held[{start + k * _TILE} + j])"
        total = f"add({total}, {part})" if total else part
    return f"""{_head("grid_sampled", dtype, "x grid", mode)}
    for n in range(args[0]):
        for first in range(0, count, {_TILE}):
            width = min({_TILE}, count - first)
            for j in range(width):
                p = (n * count + first + j) * 2
{_indented(_corner_lines(dtype, mode, padding, align, str(_TILE), str(start)), 16)}
            for c in range(channels):
                q = (n * channels + c) * h * w
                o = (n * channels + c) * count + first
                for j in range(width):
                    out[o + j] = {total}
    return 0
"""


def spread_source(dtype: Any, mode: str, padding: str, align: bool) -> str:
    """Return the kernel of the gradient of the image."""
    corners = len(_CORNERS[mode])
    others = range(corners - 1)
    planes = "\n".join(f"plane{k} = weights + {corners} * count + {k} * h * w" for k in others)
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
            for e in range(h * w):
                out[q + e] = {total}""" if corners > 1 else ""  # fmt: skip
    return f"""{_head("grid_spread", dtype, "g grid", mode)}
    weights = {corners} * count
{_indented(planes, 4)}
    for n in range(args[0]):
        for j in range(count):
            p = (n * count + j) * 2
{_indented(_corner_lines(dtype, mode, padding, align, "count", "weights"), 12)}
        for c in range(channels):
            q = (n * channels + c) * h * w
            o = (n * channels + c) * count
            for e in range(h * w):
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
    lines.append(f"out[p + {'1' if axis == 'y' else '0'}] = add(s, {zero})")
    return "\n".join(lines)


def slopes_source(dtype: Any, mode: str, padding: str, align: bool) -> str:
    """Return the kernel of the gradient of the grid; that of nearest places is 0."""
    zero, corners = f"{dtype}(0.0)", _CORNERS[mode]
    sums = len(corners) * _TILE
    slopes = {axis: _indented(_slope(dtype, padding, align, axis), 16) for axis in "yx"}
    totals = found = offsets = ""
    if mode == "nearest":
        starts = dict.fromkeys("yx", f"s = {zero}")
    else:
        each = [f"acc{k}" for k in range(4)]
        offsets = "".join(f"    {acc} = {sums + 4 * _TILE} + {k} * args[5]\n" for k, acc in enumerate(each))
        starts_of = "\n".join(f"start_columns(held, {acc}, width, channels)" for acc in each)
        carries = "\n".join(f"carry_columns(held, {acc}, width, (c >> 10) - 1)" for acc in each)
        adds = "\n".join(
            f"held[{acc} + lane + j] = add(held[{acc} + lane + j], mul(v, x[q + to_int64(places[{k * _TILE} + j])]))"
            for k, acc in enumerate(each)
        )
        ends = "\n".join(
            f"finish_columns(held, {acc}, width, channels, held, {sums + k * _TILE})" for k, acc in enumerate(each)
        )
        totals = f"""
            for j in range(width):
                p = (n * count + first + j) * 2
{_indented(_corner_lines(dtype, mode, padding, align, str(_TILE), ""), 16)}
{_indented(starts_of, 12)}
            for c in range(channels):
                if c & {BLOCK - 1} == 0 and c > 0:
{_indented(carries, 20)}
                lane = (c & {LANES - 1}) * width
                q = (n * channels + c) * h * w
                o = (n * channels + c) * count + first
                for j in range(width):
                    v = g[o + j]
{_indented(adds, 20)}
{_indented(ends, 12)}"""
        found = "\n".join(
            f"g{y}{x} = where(logical_and(inside_y{y}, inside_x{x}), held[{sums + k * _TILE} + j], {zero})"
            for k, (y, x) in enumerate(corners)
        )
        starts = {
            "y": "s = add(mul(g11, share_x1), mul(g10, share_x0))\n"
            f"s = add(add(s, neg(add(mul(g01, share_x1), mul(g00, share_x0)))), {zero})",
            "x": "s = add(mul(g11, share_y1), mul(g01, share_y0))\n"
            f"s = add(add(s, neg(add(mul(g10, share_y1), mul(g00, share_y0)))), {zero})",
        }
    return f"""{_head("grid_slopes", dtype, "g x grid", mode)}{offsets}
    for n in range(args[0]):
        for first in range(0, count, {_TILE}):
            width = min({_TILE}, count - first){totals}
            for j in range(width):
                p = (n * count + first + j) * 2
{_indented(_axes(dtype, mode, padding, align), 16)}
{_indented(found, 16)}
{_indented(starts["y"], 16)}
{slopes["y"]}
{_indented(starts["x"], 16)}
{slopes["x"]}
    return 0
"""
