"""Bars as SVG text: the waterfall, one-off costs by phase, memory over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.lab.html.charts import LEFT, NAMES, RIGHT, WIDTH, box, label, picture
from benchmarks.terminal import seconds

COLOURS = 10


def waterfall(segments: Sequence[dict[str, Any]], eager: float) -> str:
    """Return bars from the eager call down to nothing, each with its interval."""
    row, left = 26, 250
    scale = (WIDTH - left - 120) / max(eager, 1e-12)
    parts: list[str] = []

    def bar(y: float, start: float, length: float, kind: str, name: str, text: str, told: str) -> None:
        first, size = max(min(start, start + length), 0.0), abs(length)
        parts.append(label(left - 8, y + 16, name, "end"))
        parts.append(box(left + first * scale, y + 4, size * scale, row - 8, kind, told))
        parts.append(label(left + (first + size) * scale + 5, y + 16, text))

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
    row, left = 30, 150
    scale, parts = (WIDTH - left - 90) / most, []
    for i, (title, found) in enumerate(rows):
        y, x = i * row, float(left)
        parts.append(label(left - 8, y + 19, title, "end"))
        for name, value in found.items():
            size = max(value, 0) * scale
            style = f"p{names.index(name) % COLOURS}"
            parts.append(box(x, y + 5, size, row - 10, style, f"{name}: {seconds(max(value, 0))}"))
            x += size
        parts.append(label(x + 5, y + 19, seconds(sum(found.values()))))
    y, x = len(rows) * row + 8, float(left)
    for k, name in enumerate(names):
        if x > WIDTH - 120:
            x, y = float(left), y + 20
        parts += [box(x, y, 12, 12, f"p{k % COLOURS}"), label(x + 16, y + 11, name)]
        x += 40 + 7 * len(name)
    return picture(y + 24, "".join(parts), "one-off cost by phase")


def arena(pieces: Sequence[Mapping[str, Any]]) -> str:
    """Return memory against kernel calls: where each temporary lies, and how long it lives."""
    if not pieces:
        return ""
    calls = max(p["last"] for p in pieces) + 1
    total = max(p["offset"] + p["nbytes"] for p in pieces) or 1
    height = 220
    wide, high = (WIDTH - LEFT - RIGHT) / calls, (height - 40) / total
    parts = []
    for i, p in enumerate(pieces):
        top = height - 30 - (p["offset"] + p["nbytes"]) * high
        told = f"{p['name']}: {p['nbytes']:,} bytes, kernel calls {p['first']} to {p['last']}"
        size = (p["last"] - p["first"] + 1) * wide, p["nbytes"] * high
        parts.append(box(LEFT + p["first"] * wide, top, *size, f"p{i % COLOURS}", told))
    parts.append(label(LEFT - 6, 20, f"{total:,} B", "end"))
    parts.append(label(WIDTH / 2, height - 8, f"kernel calls, 0 to {calls - 1}", "middle"))
    return picture(height, "".join(parts), "memory over time")


def _signed(value: float) -> str:
    return f"{'-' if value < 0 else ''}{seconds(abs(value))}"
