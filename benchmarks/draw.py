"""``python3 -m benchmarks draw``: the total cost of a run over the number of calls, as a picture."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from benchmarks import store

__all__ = ["draw", "main"]

COLORS = {"dynamic": "#d95f02", "static": "#1b6ca8"}
STARTS = {"cold": "--", "disk": "-"}
#: Colours on a dark page; those of the file itself stay in front, since some viewers know no style sheets.
DARK = """<style>
@media (prefers-color-scheme: dark) {
svg { fill: #e3e8f0; }
[style*="fill: #ffffff"] { fill: #15191f !important; }
[style*="stroke: #000000"] { stroke: #e3e8f0 !important; }
[style*="stroke: #d95f02"] { stroke: #ff9a4d !important; }
[style*="stroke: #1b6ca8"] { stroke: #6cb6f0 !important; }
}
</style>
"""
DECADES = 5
COLUMNS = 5


def main(arguments: list[str]) -> int:
    """Draw a record of a run. Returns the exit code: 2 if there is none to be drawn."""
    parser = argparse.ArgumentParser(
        prog="python3 -m benchmarks draw",
        description="Draw what each engine has cost after so many calls, one-off costs included.",
    )
    parser.add_argument("record", nargs="?", type=Path, help="a run's JSON file; default: the newest in .benchmarks")
    parser.add_argument("--to", type=Path, default=Path("payoff.svg"), help="SVG, PDF or PNG; default: payoff.svg")
    options = parser.parse_args(arguments)
    try:
        path = options.record or store.newest()
        draw(store.load(path), options.to)
    except (LookupError, ValueError, OSError) as problem:
        print(f"benchmarks: {problem}", file=sys.stderr)
        return 2
    print(f"{path} drawn in {options.to}")
    return 0


def draw(record: dict[str, Any], path: Path) -> None:
    """Draw seconds against calls, a panel per workload: where the lines cross, compiling has paid off.

    Parameters
    ----------
    record : of `store.load`; workloads without one-off costs are left out.
    path : the file to write; its suffix is the format.

    Raises
    ------
    ValueError : no workload has one-off costs, as with ``--threads``; or matplotlib cannot write such a file.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    workloads = [workload for workload in record["workloads"] if "once" in workload]
    if not workloads:
        raise ValueError("no workload of this record has one-off costs; they are measured with one thread")
    rows = -(-(len(workloads) + 1) // COLUMNS)
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "twingrad", "font.size": 8}):
        figure = Figure(figsize=(2.4 * COLUMNS, 2.0 * rows), layout="constrained")
        panels = figure.subplots(rows, COLUMNS, squeeze=False).ravel()
        for panel, workload in zip(panels, workloads, strict=False):
            _panel(panel, workload)
        for panel in panels[len(workloads) :]:
            panel.axis("off")
        named = [panel.get_legend_handles_labels() for panel in panels[: len(workloads)]]
        once = {name: line for lines, names in named for line, name in zip(lines, names, strict=True)}
        panels[len(workloads)].legend(once.values(), once.keys(), loc="center", frameon=False)
        figure.supxlabel("calls after the first")
        figure.supylabel("seconds since the process began to import the engine")
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    if path.suffix == ".svg":
        path.write_text(path.read_text("utf-8").replace("</metadata>\n", "</metadata>\n" + DARK), "utf-8")


def _panel(panel: Any, workload: dict[str, Any]) -> None:
    """One workload: a line per engine and kind of start, and a mark where compiling from the disk has paid off."""
    counts = [10 ** (i / 8) for i in range(8 * DECADES + 1)]
    for start, style in STARTS.items():
        for engine, color in COLORS.items():
            total = [_total(workload, engine, start, n) for n in counts]
            panel.loglog(counts, total, style, color=color, lw=1.2, label=f"{engine}, {_BEGIN[start]}")
    after = workload["break_even"]["disk"]["value"]
    if after is not None and 1 <= after <= 10**DECADES:
        panel.plot([after], [_total(workload, "static", "disk", after)], "o", color="black", ms=3.5, label=_PAID)
    panel.set_title(workload["name"])
    panel.minorticks_off()
    panel.grid(alpha=0.25, lw=0.5)


_BEGIN = {"cold": "empty cache", "disk": "from the disk cache"}
_PAID = "compiling has paid off"


def _total(workload: dict[str, Any], engine: str, start: str, calls: float) -> float:
    """Seconds from the import to the end of so many calls after the first."""
    once: float = workload["once"][engine][start]["value"]
    return once + calls * float(workload["call"][engine]["value"])
