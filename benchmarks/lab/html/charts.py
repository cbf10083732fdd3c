"""Charts as SVG text: colours are variables of the page, so that they follow light and dark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

from benchmarks.terminal import seconds
from static.reports.costs import amount

WIDTH, HEIGHT = 720, 304
LEFT, RIGHT, TOP, BOTTOM = 100, 30, 44, 50
DECADES = 7
"""Calls on the axis of the cumulative cost: from 1 to 10^7."""


NAMES = {"cold": "empty cache", "disk": "from disk", "memory": "again"}


class Axis:
    """A logarithmic axis.

    Parameters
    ----------
    low, high : float
        Of the values.
    start, end : float
        Where they lie, in pixels.
    """

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self.low, self.high = math.floor(math.log10(low)), math.ceil(math.log10(high))
        self.high = max(self.high, self.low + 1)
        self.start, self.end = start, end

    def __call__(self, value: float) -> float:
        """Where a value lies."""
        share = (math.log10(max(value, 1e-300)) - self.low) / (self.high - self.low)
        return self.start + (self.end - self.start) * min(max(share, 0.0), 1.0)

    @property
    def ticks(self) -> list[float]:
        """Powers of ten, at most eight."""
        step = max(1, -(-(self.high - self.low) // 8))
        return [10.0**k for k in range(self.low, self.high + 1, step)]


def picture(height: float, body: str, name: str) -> str:
    """Return a drawing as wide as the page, a phone's too, where its texts are larger beside it."""
    return f'<svg class="chart" viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escape(name)}">{body}</svg>'


def label(x: float, y: float, text: str, anchor: str = "start", style: str = "") -> str:
    """Return a text; `anchor` is "start", "middle" or "end"."""
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def box(x: float, y: float, width: float, height: float, style: str, told: str = "") -> str:
    """Return a rectangle that tells something when it is rested on."""
    size = f'x="{x:.1f}" y="{y:.1f}" width="{max(width, 1):.1f}" height="{max(height, 1):.1f}"'
    return f'<rect class="{style}" {size}><title>{escape(told)}</title></rect>'


def dot(x: float, y: float, style: str, told: str = "", marks: str = "") -> str:
    """Return a point that tells something when it is rested on."""
    place = f'cx="{x:.1f}" cy="{y:.1f}" r="4"'
    return f'<circle class="{style}" data-n="{marks}" {place}><title>{escape(told)}</title></circle>'


def frame(x: Axis, y: Axis, x_label: str, y_label: str, x_text: Any, y_text: Any, body: str, name: str) -> str:
    """Return a chart with grid and labels."""
    parts = []
    for value in y.ticks:
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{escape(y_text(value))}</text>')
    for value in x.ticks:
        parts.append(f'<line class="grid" x1="{x(value):.1f}" x2="{x(value):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
        parts.append(
            f'<text x="{x(value):.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{escape(x_text(value))}</text>'
        )
    parts.append(label((LEFT + WIDTH) / 2, HEIGHT - 6, x_label, "middle"))
    parts.append(label(0, 17, y_label))
    return picture(HEIGHT, f"<title>{escape(name)}: {escape(y_label)}</title>{''.join(parts)}{body}", name)


def line(points: Sequence[tuple[float, float]], style: str) -> str:
    """Return a line through points in pixels."""
    text = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline class="line {style}" points="{text}"/>'


def band(upper: Sequence[tuple[float, float]], lower: Sequence[tuple[float, float]], style: str) -> str:
    """Return the area between two lines."""
    text = " ".join(f"{x:.1f},{y:.1f}" for x, y in [*upper, *reversed(lower)])
    return f'<polygon class="band {style}" points="{text}"/>'


def cumulative(costs: dict[str, Any], start: str) -> str:
    """Return seconds in all against calls, of both engines, one-off costs included.

    Parameters
    ----------
    costs : dict
        engine -> {"once": {start: seconds}, "call": {"value", "low", "high"}}.
    start : str
        "cold" or "disk".
    """
    counts = [10 ** (k / 6) for k in range(6 * DECADES + 1)]
    totals = {
        engine: {end: [c["once"][start] + n * c["call"][end] for n in counts] for end in ("value", "low", "high")}
        for engine, c in costs.items()
    }
    every = [v for t in totals.values() for v in t["value"]]
    x, y = Axis(1, 10.0**DECADES, LEFT, WIDTH - RIGHT), Axis(min(every), max(every), HEIGHT - BOTTOM, TOP)
    body = ""
    for engine, total in totals.items():
        at = {end: [(x(n), y(t)) for n, t in zip(counts, values, strict=True)] for end, values in total.items()}
        body += band(at["high"], at["low"], engine) + line(at["value"], engine)
        dearer = total["value"][-1] == max(t["value"][-1] for t in totals.values())
        end, last = at["value"][-1]
        body += label(end - 4, max(last - 6, 18.0) if dearer else last + 20, engine, "end", engine)
    span = f'data-left="{LEFT}" data-right="{WIDTH - RIGHT}"'
    body += f'<line class="marker" {span} x1="{LEFT}" x2="{LEFT}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
    return frame(
        x, y, "calls", "seconds in all", lambda n: amount(n, "").strip(), long, body, f"cumulative cost, {start}"
    )


def long(value: float) -> str:
    """Return a power of ten of seconds for an axis, in few letters.

    Examples
    --------
    >>> long(1000.0), long(1e6)
    ('1000 s', '1e6 s')
    """
    return seconds(value) if value < 1e5 else f"1e{round(math.log10(value))} s"


def sweep(points: Sequence[tuple[float, dict[str, float]]], name: str) -> str:
    """Return seconds per call against a size, of both engines."""
    every = [v for _, values in points for v in values.values()]
    sizes = [n for n, _ in points]
    x, y = Axis(min(sizes), max(sizes), LEFT, WIDTH - RIGHT), Axis(min(every), max(every), HEIGHT - BOTTOM, TOP)
    body = ""
    for way in points[0][1]:
        at = [(x(n), y(values[way])) for n, values in points if way in values]
        body += line(at, way) + "".join(dot(a, b, way) for a, b in at)
        body += label(at[0][0] + 6, at[0][1] - 6, way, style=way)
    return frame(x, y, name, "seconds per call", lambda n: f"{n:g}", seconds, body, "overhead against size")


def roofline(kernels: Sequence[dict[str, Any]], machine: dict[str, float]) -> str:
    """Return operations per second against operations per byte; the roof is what was measured of the machine."""
    found = [k for k in kernels if k.get("seconds") and k["flops"] and k["reads"] + k["writes"]]
    dots = [
        (k["flops"] / (k["reads"] + k["writes"]), k["flops"] / k["seconds"]["value"], k)
        for k in found
        if k["seconds"]["value"] > 0
    ]
    if not dots:
        return ""
    peak, width = machine["peak_float32"], machine["bandwidth"]
    x = Axis(min(0.01, *(d[0] for d in dots)), max(100.0, *(d[0] for d in dots)), LEFT, WIDTH - RIGHT)
    y = Axis(min(d[1] for d in dots) / 2, max(peak, *(d[1] for d in dots)), HEIGHT - BOTTOM, TOP)
    knee = peak / width
    body = line([(x(10.0**x.low), y(width * 10.0**x.low)), (x(knee), y(peak)), (x(10.0**x.high), y(peak))], "roof")
    for intensity, speed, k in dots:
        told = f"{', '.join(k['ops'][:8])}: {seconds(k['seconds']['value'])}"
        body += dot(x(intensity), y(speed), "static", told, " ".join(f"n{i}" for i in k.get("ids", [])))
    labels = "operations per byte", "operations per second"
    return frame(x, y, *labels, lambda n: f"{n:g}", lambda n: f"{amount(n, '').strip()}/s", body, "roofline")
