"""Gates: import, first call from the disk cache, and tracing."""

import subprocess
import sys
from typing import Any

import numpy as np

from benchmarks.bootstrap import ROOT
from benchmarks.oneoff import child_environment, cold_and_disk


def seconds_in_new_process(code: str) -> float:
    """Run code that prints a number in a new process and return the number."""
    done = subprocess.run(
        [sys.executable, "-c", code], env=child_environment(), cwd=ROOT, capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def test_import_of_dynamic(benchmark: Any) -> None:
    """At most 0.2 s, numpy included."""
    code = "import time; t = time.perf_counter(); import dynamic; print(time.perf_counter() - t)"
    found = [seconds_in_new_process(code) for _ in range(7)]
    benchmark.extra_info["import_seconds"] = found
    benchmark.pedantic(seconds_in_new_process, (code,), rounds=3)
    assert np.median(found) <= 0.2


def test_digits_step_from_the_disk_cache(benchmark: Any) -> None:
    """At most 0.3 s after imports for building, tracing, loading and the first step in a new process."""
    reports = benchmark.pedantic(cold_and_disk, ("static", "digits", 1, 5), rounds=1)["disk"]
    found = [report["build_seconds"] + report["first_call_seconds"] for report in reports]
    benchmark.extra_info["first_step_seconds"] = found
    assert np.median(found) <= 0.3
