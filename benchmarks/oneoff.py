"""One-off cost and peak memory, measured in fresh processes: with an empty cache, then from the disk."""

import json
import os
import subprocess
import sys
import tempfile

import numpy as np

from benchmarks.bits import STEPS
from benchmarks.bootstrap import ROOT
from benchmarks.stats import Samples

Report = dict[str, float]


class ChildError(RuntimeError):
    """A measuring process failed; the message ends with what it printed on stderr."""


def fresh_process(engine: str, workload: str, cache: str, steps: int = STEPS) -> Report:
    """Run one workload in a new process whose compiler cache is the folder `cache`.

    Returns
    -------
    dict
        As :func:`benchmarks.child.main` returns it: seconds and bytes.

    Raises
    ------
    ChildError
        If the process fails.
    """
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.child", engine, workload, str(steps)],
        env={**child_environment(), "TWINGRAD_CACHE": cache},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise ChildError("\n".join([*lines[-20:-1], f"{engine} failed in a new process: {lines[-1]}"]))
    return dict(json.loads(done.stdout.splitlines()[-1]))


def child_environment() -> dict[str, str]:
    """The environment of a measuring process: it finds this checkout, and keeps bytecode as an installed package does.

    An environment that forbids bytecode files would make every import compile every module again.
    """
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": path}


def cold_and_disk(engine: str, workload: str, cold: int, disk: int) -> dict[str, list[Report]]:
    """Measure `cold` first runs, each with an empty cache, then `disk` runs that find the one that the last has filled.

    Of a cold run only the first call counts, so those whose cache is thrown away make no further steps.
    """
    found: dict[str, list[Report]] = {"cold": [], "disk": []}
    for i in range(1, cold + 1):
        with tempfile.TemporaryDirectory(prefix="twingrad-") as cache:
            found["cold"].append(fresh_process(engine, workload, cache, STEPS if i == cold else 0))
            if i == cold:
                found["disk"] = [fresh_process(engine, workload, cache) for _ in range(disk)]
    return found


def once(reports: list[Report]) -> Samples:
    """Return the one-off seconds of each process: import, building and the whole first call."""
    parts = ("import_seconds", "build_seconds", "first_call_seconds")
    return np.array([sum(report[part] for part in parts) for report in reports])
