"""``explain FILE.py:NAME``: the ladder in the terminal."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from benchmarks import machine, store
from benchmarks.lab import console, measuring, verdict
from benchmarks.lab.activity import governor
from benchmarks.lab.ladder import NotTheSame, ladder
from benchmarks.lab.patience import Patience
from benchmarks.lab.progress import Progress
from benchmarks.lab.stability import first_line
from benchmarks.terminal import seconds, significant
from static.reports.costs import amount

COLOURS = {"way": "red", "call": "yellow", "limit": "green", "remainder": "dim"}


def main(options: argparse.Namespace) -> int:
    """Measure the ladder of a program, print and store it. Returns the exit code: 1 if a bit differs."""
    threads, cores = options.threads, machine.cores()
    if not 1 <= threads <= cores:
        raise ValueError(f"--threads is from 1 to {cores}, the cores of this process, not {threads}")
    options.threads, options.sweep = 1, ""
    engines, kept = measuring.begin(options)
    (workload,) = measuring.programs(options, engines["dynamic"])
    workload.inputs()
    duration = options.seconds or (2.0 if options.quick else 10.0)
    try:
        with Progress(1) as progress:
            patience = Patience(progress.say, options.limit)
            found = ladder(
                workload, engines, duration, threads, not options.quick, progress.tell, options.clock, patience
            )
    except NotTheSame as problem:
        console.wrapped(f"{workload.name}: BITS DIFFER, so nothing was timed: {problem}", style="bold red")
        return 1
    record = {
        "machine": {**machine.describe(), "governor": governor()}, "quick": options.quick, "cores": kept,
        "threads": threads, "complete": True,
        "workloads": [{"name": workload.name, "key": workload.key, "title": workload.title, "bits_equal": True,
                       "differences": [], "error": "", "unstable": found["unstable"], "ladder": found}],
    }  # fmt: skip
    path = options.json or store.default_path()
    store.save(path, record)
    show(workload.name, found)
    print(f"results: {path}", file=sys.stderr)
    measuring.report(record, options.report, engines)
    return 0


def show(name: str, found: dict[str, Any]) -> None:
    """Print a ladder."""
    if found["unstable"]:
        console.wrapped(first_line(found["unstable"]), style="bold yellow")
    rungs = {rung["name"]: rung for rung in found["rungs"]}
    first, last = rungs["eager"]["call"]["value"], rungs["memory planned"]["call"]["value"]
    console.wrapped(f"{name}: compiled is {verdict.times(first / last)} as fast as eager; "
                    f"the same bits on {len(rungs)} rungs.", style="bold green")  # fmt: skip
    console.say()
    rows = []
    for rung in found["rungs"]:
        value = rung["call"]["value"]
        rows.append([
            rung["name"], seconds(value), verdict.times(first / value), _amount(rung["kernel_calls"], ""),
            _amount(rung["moved_bytes"], "B"), _amount(rung.get("allocations"), ""), _amount(rung["peak_bytes"], "B"),
        ])  # fmt: skip
    for line in console.columns(rows, ["rung", "per call", "as fast", "kernels", "moves", "arrays", "peak"]):
        console.say(line)
    console.say()
    console.say("Where the eager call's time goes, by measured differences:", "bold")
    most = max(abs(segment["value"]) for segment in found["waterfall"])
    wide = min(36, console.width() - 27)
    for segment in found["waterfall"]:
        value, share = segment["value"], segment["share"]
        label = segment["name"] if len(segment["name"]) <= wide else segment["name"][: wide - 3] + "..."
        number = ("-" if value < 0 else "") + seconds(abs(value))
        head = f"  {label:<{wide}} {number:>9} {100 * share:>5.1f}% "  # beside other work a share can be -120.0
        drawn = console.bar(abs(value) / most, max(console.width() - max(len(head), wide + 21) - 1, 5))
        console.say(head + drawn, COLOURS[segment["kind"]])
    console.say()
    limits(found, last)
    if "once" in found:
        console.say()
        phases(found["once"])
    slowest(found["kernels"])


def limits(found: dict[str, Any], last: float) -> None:
    """Print how far the compiled call is from what the machine could do."""
    machine_, planned = found["machine"], next(r for r in found["rungs"] if r["name"] == "memory planned")
    if planned["moved_bytes"] is None:
        return
    memory = planned["moved_bytes"] / machine_["bandwidth"]
    products = sum(k["times"] * k["flops"] for k in found["kernels"] if k["name"].startswith(("gemm", "conv")))
    compute = products / machine_["peak_float32"]
    console.wrapped(
        f"Limits: {amount(planned['moved_bytes'], 'B')} at {amount(machine_['bandwidth'], 'B/s')} (measured, "
        f"{amount(machine_['footprint'], 'B')} in turn) take {seconds(memory)}; products of "
        f"{amount(products, 'flop')} at {amount(machine_['peak_float32'], 'flop/s')} take {seconds(compute)}. "
        f"The compiled call takes {verdict.times(last / max(memory + compute, 1e-12))} as long as both in turn."
    )


def phases(once: dict[str, Any]) -> None:
    """Print one-off costs by phase."""
    names = list(dict.fromkeys(p for starts in once.values() for found in starts.values() for p in found))
    rows = []
    for engine, starts in once.items():
        for start, found in starts.items():
            cells = [_milliseconds(found.get(name)) for name in names]
            rows.append([f"{engine} {start}".replace("memory", "again"), *cells, _milliseconds(sum(found.values()))])
    console.say("One-off cost until the first result, milliseconds:", "bold")
    for line in console.columns(rows, ["", *(name.removesuffix(" call") for name in names), "all"]):
        console.say(line)


def slowest(kernels: list[dict[str, Any]], count: int = 5) -> None:
    """Print the kernels that take longest."""
    timed = [k for k in kernels if k.get("seconds")]
    if not timed:
        return
    console.say()
    console.say("Kernels that take longest:", "bold")
    for k in sorted(timed, key=lambda k: -k["seconds"]["value"])[:count]:
        line = k["lines"][0].rpartition("/")[2] if k["lines"] else ""
        ops = ", ".join(k["ops"][:6]) + (", ..." if len(k["ops"]) > 6 else "")
        console.say(f"  {seconds(k['seconds']['value']):>8}  {line}  {ops}"[: console.width()])


def _milliseconds(value: float | None) -> str:
    return "" if value is None else significant(1e3 * value)


def _amount(value: float | None, unit: str) -> str:
    return "-" if value is None else amount(value, unit).strip() if unit else f"{value:,}"
