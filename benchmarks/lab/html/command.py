"""``report`` and ``graph``: pages of a run's figures, and of a program."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks import machine, store
from benchmarks.lab import measuring
from benchmarks.lab.html.report import write
from benchmarks.lab.patience import Patience, on_stderr
from benchmarks.lab.rungs import climb


def report(arguments: list[str]) -> int:
    """Write the page of a run that is stored."""
    p = argparse.ArgumentParser(prog="twingrad report", description="Write the page of a run.")
    p.add_argument("record", nargs="?", type=Path, help="a run's JSON file; default: the newest in .benchmarks")
    p.add_argument("--to", type=Path, default=Path("report.html"), help="file; default: report.html")
    options = p.parse_args(arguments)
    engines = {name: __import__(name) for name in ("dynamic", "static")}
    path = options.record or store.newest()
    write(store.load(path), options.to, engines)
    print(f"{path} is shown in {options.to}")
    return 0


def graph(options: argparse.Namespace) -> int:
    """Write the graph of a program; the ending of the file decides how."""
    options.sweep = ""
    engines = {name: __import__(name) for name in ("dynamic", "static")}
    (workload,) = measuring.programs(options, engines["dynamic"])
    to = options.to or Path(f"{workload.target.name or 'program'}.html")
    watched = Patience(on_stderr, options.limit).of(workload)
    *_, last = climb(watched, engines["dynamic"], engines["static"])
    last.call(*last.inputs[0])
    function = last.function
    if function is None:
        raise LookupError(f"{workload.name} is not one compiled function: it has no graph of its own")
    if to.suffix == ".html":
        record = {
            "machine": machine.describe(),
            "workloads": [{"name": workload.name, "key": workload.key, "title": workload.title, "bits_equal": True}],
        }  # fmt: skip
        write(record, to, engines, only_graph=True)
    else:
        function.picture.save(to)
    nodes = "?" if function is None else sum(n.op is not None for n in function.newest.graph.all_nodes())
    print(f"{workload.name}: {nodes} nodes, in {to}")
    return 0
