"""The report of a run: one file that needs nothing else, light and dark, printable, usable by keyboard."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks import machine
from benchmarks.lab import verdict
from benchmarks.lab.html import bars, charts, semantics
from benchmarks.lab.html.stages import stages
from benchmarks.lab.target import find
from benchmarks.terminal import seconds
from static.reports.costs import amount

HERE = Path(__file__).parent
RAW_BYTES = 400_000
"""Raw data beyond this is left to the JSON file: the page stays below two megabytes."""
ROWS = 1500
"""Nodes of a program that a page shows; of a larger one it shows the charts only."""
METHOD = (
    "Bits were compared first: 20 calls, results, gradients and state; what differs is not timed. Then all ways of "
    "running a program were timed in one process, in turns, after a warm-up, with the garbage collector on; a batch "
    "lasts at least 5 ms. Medians over rounds; ratios and differences of the same rounds; 95 % intervals by the "
    "bootstrap. One-off costs are of new processes, with an empty cache of machine code and with a filled one."
)


class LacksJinja(LookupError):
    """Pages are made by Jinja2, which is an extra."""


def write(record: Mapping[str, Any], path: Path, engines: Mapping[str, ModuleType], only_graph: bool = False) -> None:
    """Write the page of a record.

    Parameters
    ----------
    record : mapping
        As it is stored.
    path : Path
        The file to write.
    engines : mapping of name to module
        The programs of the record are traced again, for the pages from line to kernel.
    only_graph : bool
        Leave out what is about time.

    Raises
    ------
    LacksJinja
        If Jinja2 is not installed; the message says how to install it.
    """
    path.write_text(page(record, engines, only_graph), encoding="utf-8")


def page(record: Mapping[str, Any], engines: Mapping[str, ModuleType], only_graph: bool = False) -> str:
    """Return the page of a record as text; see `write`."""
    try:
        from jinja2 import Environment, FileSystemLoader
    except ImportError:
        raise LacksJinja("a page needs Jinja2: pip install 'twingrad[lab]'") from None
    environment = Environment(loader=FileSystemLoader(HERE), autoescape=True, trim_blocks=True)
    environment.filters["coded"] = _coded
    programs = [_program(w, engines, only_graph) for w in record["workloads"]]
    raw = json.dumps(record, indent=1)
    names = ", ".join(program["name"] for program in programs)
    return environment.get_template("page.html.j2").render(
        title=f"{names}: from define-by-run to define-then-run" if len(programs) < 4 else "Twingrad: a run",
        programs=programs,
        sweep="" if only_graph else _sweep(record["workloads"]),
        semantics=[] if only_graph else semantics.compared(dict(engines)),
        method="" if only_graph else METHOD,
        machine=machine.one_line(dict(record["machine"])),
        raw=raw if len(raw) < RAW_BYTES and not only_graph else "",
        style=_safe("page.css"),
        script=_safe("page.js"),
    )


def _safe(name: str) -> Any:
    from markupsafe import Markup

    return Markup((HERE / name).read_text(encoding="utf-8"))


def _coded(text: str) -> Any:
    """A text with what stands between backticks, and options, as code."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"`(.+?)`|(--[\w-]+(?: \w+)?)", r"<code>\1\2</code>", str(escape(text))))


def _program(workload: Mapping[str, Any], engines: Mapping[str, ModuleType], only_graph: bool) -> dict[str, Any]:
    ladder = workload.get("ladder")
    found: dict[str, Any] = {
        "name": workload["name"], "title": workload["title"], "unstable": workload.get("unstable", []),
        "verdict": "" if only_graph else sentence(workload),
    }  # fmt: skip
    if not only_graph:
        costs = costs_of(workload)
        if costs is not None:
            found["costs"] = costs
            found["even"] = {start: paid["value"] for start, paid in workload.get("break_even", {}).items()}
            found["cumulative"] = {start: charts.cumulative(costs, start) for start in ("disk", "cold")}
        found["calls"] = _calls(workload)
        if ladder is not None:
            found |= _ladder(ladder)
    if workload.get("bits_equal"):
        shown = stages(find(workload["key"], engines["dynamic"]), engines["dynamic"], engines["static"],
                       ladder["kernels"] if ladder else ())  # fmt: skip
        if shown is not None:
            found["arena"] = bars.arena(shown["arena"])
            for kernel in shown["kernels"]:
                kernel["told"] = _cost(kernel["cost"])
            if ladder is not None:
                timed = [{**k["cost"], "ids": k["ids"]} for k in shown["kernels"] if k["cost"]]
                found["roofline"] = charts.roofline(timed, ladder["machine"])
            if sum(len(p["graph"]) for p in shown["passes"]) + len(shown["raw"]) > ROWS:
                for p in shown["passes"]:
                    p["graph"] = []
            found["stages"] = shown if len(shown["raw"]) <= ROWS else None
    return found


def sentence(workload: Mapping[str, Any]) -> str:
    """Return the verdict of a workload that was run, or climbed."""
    ladder = workload.get("ladder")
    if ladder is None:
        return verdict.verdict(workload)
    rungs = {rung["name"]: rung["call"]["value"] for rung in ladder["rungs"]}
    factor = rungs["eager"] / rungs["memory planned"]
    return f"{workload['name']}: static is {verdict.times(factor)} as fast as dynamic, same bits on {len(rungs)} rungs."


def costs_of(workload: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return per engine the one-off seconds of each start and the time per call; None if one is missing."""
    ladder = workload.get("ladder")
    if ladder is not None and "once" in ladder:
        rungs = {rung["name"]: rung["call"] for rung in ladder["rungs"]}
        once = {e: {s: sum(found.values()) for s, found in starts.items()} for e, starts in ladder["once"].items()}
        return {
            "dynamic": {"once": once["dynamic"], "call": rungs["eager"]},
            "static": {"once": once["static"], "call": rungs["memory planned"]},
        }
    if "once" not in workload:
        return None
    return {
        engine: {"once": {s: e["value"] for s, e in workload["once"][engine].items()}, "call": workload["call"][engine]}
        for engine in ("dynamic", "static")
    }


def _calls(workload: Mapping[str, Any]) -> list[list[str]]:
    rows = []
    for name, call in sorted(workload.get("call", {}).items(), key=lambda item: item[1]["value"]):
        over = workload["static_over"].get(name)
        ratio = "" if over is None else f"{verdict.times(1 / over['value'])} {verdict.interval(over)}"
        rows.append([name, seconds(call["value"]), f"{seconds(call['low'])} to {seconds(call['high'])}", ratio])
    return rows


def _ladder(ladder: Mapping[str, Any]) -> dict[str, Any]:
    eager = ladder["rungs"][0]["call"]["value"]
    rungs = [
        {"meaning": r["meaning"], "cells": [
            r["name"], seconds(r["call"]["value"]), verdict.times(eager / r["call"]["value"]),
            "-" if r["kernel_calls"] is None else r["kernel_calls"],
            "-" if r["moved_bytes"] is None else amount(r["moved_bytes"], "B"),
            r.get("allocations", "-"), amount(r["peak_bytes"], "B"), "same",
        ]}
        for r in ladder["rungs"]
    ]  # fmt: skip
    return {
        "ladder": True, "rungs": rungs, "waterfall": bars.waterfall(ladder["waterfall"], eager),
        "phases": bars.phases(ladder["once"]) if "once" in ladder else "",
    }  # fmt: skip


def _cost(cost: Mapping[str, Any]) -> str:
    if not cost:
        return ""
    told = f"{amount(cost['reads'] + cost['writes'], 'B')}, {amount(cost['flops'], 'flop')}"
    return f"{seconds(cost['seconds']['value'])}, {told}" if cost.get("seconds") else told


def _sweep(workloads: list[dict[str, Any]]) -> str:
    """The chart over sizes, if the workloads are one program at several values of one size."""
    found: dict[tuple[str, str, str], list[tuple[float, dict[str, float]]]] = {}
    for w in workloads:
        if not w.get("call") or not w["key"].startswith("{"):
            continue
        target = json.loads(w["key"])
        for name, n in target["sizes"].items():
            points = found.setdefault((target["file"], target["name"], name), [])
            points.append((n, {way: call["value"] for way, call in w["call"].items()}))
    for (_, _, name), points in found.items():
        if len({n for n, _ in points}) > 1:
            return charts.sweep(sorted(points, key=lambda point: point[0]), name)
    return ""
