"""Bars as SVG text: the waterfall, one-off costs by phase, memory over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.lab.html.charts import LEFT, NAMES, RIGHT, WIDTH, box, label, picture
from benchmarks.terminal import seconds
from static.reports.costs import amount

COLOURS = 10
LETTER = 11
"""Pixels that a letter takes at most: on phones, where texts are larger beside the picture."""
VALUE = 17 * LETTER
"""Room for a number to the right of a bar."""


def waterfall(segments: Sequence[dict[str, Any]], eager: float) -> str:
    """Return bars from the eager call down to nothing, each with its interval."""
    row = 44
    tops = [eager - sum(before["value"] for before in segments[:i]) for i in range(len(segments) + 1)]
    scale = (WIDTH - VALUE) / max(eager, *tops, 1e-12)
    parts: list[str] = []

    def bar(y: float, start: float, length: float, kind: str, name: str, text: str, told: str) -> None:
        first, size = max(min(start, start + length), 0.0), abs(length)
        parts.append(label(0, y + 19, name))
        parts.append(box(first * scale, y + 24, size * scale, 14, kind, told))
        parts.append(label((first + size) * scale + 5, y + 37, text))

    bar(0, 0.0, eager, "whole", "the eager call", seconds(eager), "the eager call")
    at = eager
    for i, segment in enumerate(segments, 1):
        value, ends = segment["value"], (segment["low"], segment["high"])
        text = f"{_signed(value)}, {100 * segment['share']:.1f} %"
        interval = "" if None in ends else f", 95 % interval {_signed(ends[0])} to {_signed(ends[1])}"
        bar(row * i, at, -value, segment["kind"], segment["name"], text, f"{segment['name']}: {text}{interval}")
        at -= value
    return picture(row * (len(segments) + 1) + 10, "".join(parts), "waterfall")


def phases(once: Mapping[str, Mapping[str, Mapping[str, float]]]) -> str:
    """Return one-off seconds by phase, a bar per engine and start."""
    rows = [(f"{engine}, {NAMES.get(s, s)}", found) for engine, starts in once.items() for s, found in starts.items()]
    names = list(dict.fromkeys(name for _, found in rows for name in found))
    most = max(sum(max(v, 0) for v in found.values()) for _, found in rows)
    row = 44
    scale, parts = (WIDTH - VALUE) / most, []
    for i, (title, found) in enumerate(rows):
        y, x = i * row, 0.0
        parts.append(label(0, y + 19, title))
        for name, value in found.items():
            size = max(value, 0) * scale
            style = f"p{names.index(name) % COLOURS}"
            parts.append(box(x, y + 24, size, 14, style, f"{name}: {seconds(max(value, 0))}"))
            x += size
        parts.append(label(x + 5, y + 37, seconds(sum(found.values()))))
    y, x = len(rows) * row + 12, 0.0
    for k, name in enumerate(names):
        wide = 40 + LETTER * len(name)
        if x + wide > WIDTH:
            x, y = 0.0, y + 26
        parts += [box(x, y, 12, 12, f"p{k % COLOURS}"), label(x + 16, y + 12, name)]
        x += wide
    return picture(y + 24, "".join(parts), "one-off cost by phase")


def arena(pieces: Sequence[Mapping[str, Any]]) -> str:
    """Return memory against kernel calls: where each temporary lies, and how long it lives."""
    if not pieces:
        return ""
    calls = max(p["last"] for p in pieces) + 1
    total = max(p["offset"] + p["nbytes"] for p in pieces) or 1
    height = 220
    wide, high = (WIDTH - LEFT - RIGHT) / calls, (height - 45) / total
    parts = []
    for at in (0, total):
        y = height - 30 - at * high
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(label(LEFT - 6, y + 4, amount(at, "B"), "end"))
    colours: list[int] = []
    for i, p in enumerate(pieces):
        beside = {c for c, q in zip(colours, pieces) if q["first"] <= p["last"] and p["first"] <= q["last"]}
        colours.append(next((c for c in range(COLOURS) if c not in beside), i % COLOURS))
        top = height - 30 - (p["offset"] + p["nbytes"]) * high
        told = f"{p['name']}: {p['nbytes']:,} bytes, kernel calls {p['first']} to {p['last']}"
        size = (p["last"] - p["first"] + 1) * wide, p["nbytes"] * high
        parts.append(box(LEFT + p["first"] * wide, top, *size, f"p{colours[-1]}", told))
    parts.append(label((LEFT + WIDTH) / 2, height - 8, f"kernel calls, 0 to {calls - 1}", "middle"))
    return picture(height, "".join(parts), "memory over time")


def _signed(value: float) -> str:
    return f"{'-' if value < 0 else ''}{seconds(abs(value))}"
