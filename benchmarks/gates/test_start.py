"""Gates: import, first use of a kernel, first step of a program from the disk cache."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.bootstrap import ROOT
from benchmarks.oneoff import child_environment, cold_and_disk
from benchmarks.workload import discover


def seconds_in_new_process(code: str, **environment: str) -> float:
    """Run code that prints a number in a new process and return the number."""
    command, settings = [sys.executable, "-c", code], {**child_environment(), **environment}
    done = subprocess.run(command, env=settings, cwd=ROOT, capture_output=True, text=True, check=True)
    return float(done.stdout)


def test_import_of_dynamic(benchmark: Any) -> None:
    """At most 0.2 s, numpy included."""
    code = "import time; t = time.perf_counter(); import dynamic; print(time.perf_counter() - t)"
    found = [seconds_in_new_process(code) for _ in range(7)]
    benchmark.extra_info["import_seconds"] = found
    benchmark.pedantic(seconds_in_new_process, (code,), rounds=3)
    assert np.median(found) <= 0.2


FIRST_USE = """
import time, dynamic as tw
start = time.perf_counter()
tw.tensor([0.5, 1.0]).tanh()
print(time.perf_counter() - start)
"""


def test_first_use_of_an_elementary_function(benchmark: Any, tmp_path: Path) -> None:
    """After the import: at most 0.5 s with an empty cache, 10 ms from the disk cache."""
    cold = [seconds_in_new_process(FIRST_USE, TWINGRAD_CACHE=str(tmp_path / str(i))) for i in range(3)]
    disk = [seconds_in_new_process(FIRST_USE, TWINGRAD_CACHE=str(tmp_path / "0")) for _ in range(7)]
    benchmark.extra_info.update(cold_seconds=cold, disk_seconds=disk)
    benchmark.pedantic(seconds_in_new_process, (FIRST_USE,), {"TWINGRAD_CACHE": str(tmp_path / "0")}, rounds=3)
    assert np.median(cold) <= 0.5
    assert np.median(disk) <= 0.01


OF_LAPACK = ("gaussian-process",)
"""Workloads whose first call imports SciPy's linear algebra."""
SCIPY = "import time, numpy; t = time.perf_counter(); import scipy.linalg; print(time.perf_counter() - t)"


@pytest.mark.parametrize("name", [workload.name for workload in discover()])
def test_warm_start(benchmark: Any, name: str) -> None:
    """From the disk cache: at most 50 ms for tracing and loading in a new process, imports and the step aside."""
    reports = benchmark.pedantic(cold_and_disk, ("static", name, 1, 5), rounds=1)["disk"]
    found = [report["first_call_seconds"] - report["second_call_seconds"] for report in reports]
    imports = np.median([seconds_in_new_process(SCIPY) for _ in range(5)]) if name in OF_LAPACK else 0.0
    benchmark.extra_info.update(start_seconds=found, import_seconds=imports)
    assert np.median(found) - imports <= 0.05
