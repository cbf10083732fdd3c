"""``python -m benchmarks.background [workload ...]``: when compiling in the background pays.

Calls in new processes, with kernels compiled in the first call ("now") and in the background, where calls are
interpreted until machine code is there. Once with an empty cache, and once with one that holds the kernels of the eager
engine, which the interpreter uses too. Elapsed seconds after the import: to the first result, to the first call of the
compiled program, and how many calls had been made by then.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import terminal
from benchmarks.bootstrap import ROOT
from benchmarks.oneoff import child_environment

WAYS = ("now", "background")
CACHES = ("empty", "eager")
MOST_CALLS = 100_000


def child(name: str, way: str) -> dict[str, float]:
    """Run a workload until it is compiled; "eager" runs it in the interpreter only, to fill a cache."""
    import static
    from benchmarks.workload import discover
    from common.runtime import builtins

    workload = next(w for w in discover() if w.name == name)
    inputs = workload.inputs()
    program = workload.make(static)
    options = {"interpret": True} if way == "eager" else {"compile": way}
    compiled: Any = program.call
    call = static.function(compiled.target, **options)
    assert builtins.is_native()
    start = time.perf_counter()
    call(*inputs[0])
    first, count = time.perf_counter() - start, 1
    while way == "background" and call.newest_plan is None and count < MOST_CALLS:
        call(*inputs[count % len(inputs)])
        count += 1
    return {"first": first, "compiled": time.perf_counter() - start, "calls": count}


def measure(name: str, rounds: int) -> dict[tuple[str, str], dict[str, float]]:
    """Medians of what `child` finds, per cache and way, in interleaved rounds."""
    found: dict[tuple[str, str], list[dict[str, float]]] = {(c, w): [] for c in CACHES for w in WAYS}
    with tempfile.TemporaryDirectory(prefix="twingrad-") as folder:
        eager = Path(folder) / "eager"
        _run(name, "eager", eager)
        for i in range(rounds):
            for cache, way in found:
                place = Path(folder) / f"{cache}-{way}-{i}"
                if cache == "eager":
                    shutil.copytree(eager, place)
                found[cache, way].append(_run(name, way, place))
    return {
        key: {what: float(np.median([run[what] for run in runs])) for what in runs[0]} for key, runs in found.items()
    }


def _run(name: str, way: str, cache: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.background", "--child", way, name]
    environment = {**child_environment(), "TWINGRAD_CACHE": str(cache)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main(arguments: list[str] | None = None) -> int:
    """Print the table. Returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.background",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("workloads", nargs="*", default=["f-mlp", "deep"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        print(json.dumps(child(options.workloads[0], options.child)))
        return 0
    rows = []
    for name in options.workloads:
        for (cache, way), found in measure(name, options.rounds).items():
            cells = [terminal.seconds(found["first"]), terminal.seconds(found["compiled"]), f"{found['calls']:.0f}"]
            rows.append([name, f"{cache} cache", way, *cells])
    print(terminal.table(["workload", "", "compiled", "first result", "compiled call", "calls"], rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
