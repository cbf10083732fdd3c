"""Ctrl-C during a run of the benchmarks: what is finished is printed and stored, in every case."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from benchmarks import store
from benchmarks.bootstrap import ROOT

RUN = """
import gc, sys, time
from benchmarks import __main__ as command, run

class Finaliser:
    def __del__(self):
        for _ in range(2000):
            pass

names = []

def measure(workload, engines, effort, peers, progress):
    "Takes 0.1 s, one without end: most of it where Python throws exceptions away."
    names.append(workload.name)
    end = time.perf_counter() + (0.1 if len(names) < FIRST_LONG else 1e6)
    while time.perf_counter() < end:
        Finaliser()
        gc.collect(0)
    print("finished", workload.name, file=sys.stderr, flush=True)
    return run.Result(workload, error="was not measured")

run.measure = measure
sys.argv = ["benchmarks", "--json", sys.argv[1]]
raise SystemExit(command.run())
"""


def started(path, first_long):
    code = RUN.replace("FIRST_LONG", str(first_long))
    command = [sys.executable, "-c", code, str(path)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("seed", range(2))
def test_what_is_finished_is_printed_and_stored(tmp_path, seed):
    path, rng = tmp_path / "run.json", random.Random(seed)
    process = started(path, 5)
    seen = []
    for line in process.stderr:
        seen.append(line)
        if len([x for x in seen if x.startswith("finished")]) == 3:
            break
    time.sleep(rng.random() * 0.2)
    for _ in range(1 + seed):  # some press more than once
        os.kill(process.pid, signal.SIGINT)
        time.sleep(0.001)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    told = "".join(seen) + errors
    assert "Traceback" not in told
    assert "interrupted: " in told
    finished = [line.split()[1] for line in told.splitlines() if line.startswith("finished")]
    stored = store.load(path)
    assert stored["complete"] is False
    assert [x["name"] for x in stored["workloads"]] in (finished, finished[:-1])  # one may end as the press lands
    assert all(x["name"] in output for x in stored["workloads"])


def test_a_press_before_the_first_result_ends_it_in_a_line(tmp_path):
    path = tmp_path / "run.json"
    process = started(path, 1)
    for line in process.stderr:
        if "pinned" in line:
            break
    time.sleep(0.2)
    os.kill(process.pid, signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (130, "")
    assert "Traceback" not in errors
    assert not path.exists()


def test_a_run_that_goes_on_and_is_interrupted_loses_nothing_of_the_first(tmp_path):
    """Finished results of the first run, its unstable ones, and those that nobody asks for now."""
    path = tmp_path / "run.json"
    code = RUN.replace('error="was not measured"', 'differences=["a bit"]').replace("FIRST_LONG", "9999")

    def go_on(code, *words):
        command = [sys.executable, "-c", code.replace("sys.argv[1]]", "*sys.argv[1:]]"), *words]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    code = code.replace('"--json", ', "")
    go_on(code, "--json", str(path), "-k", "deep", "-k", "newton", "-k", "vae", "-k", "lenet")
    first = store.load(path)
    had = {w["name"]: w for w in first["workloads"]}
    assert len(had) == 4
    for name in ("newton", "vae"):
        had[name]["unstable"] = ["drifted"]
    store.save(path, first)
    stops = code.replace("    end = time", "    if len(names) == 2: raise KeyboardInterrupt\n    end = time")
    done = go_on(stops, "--resume", str(path), "-k", "deep", "-k", "newton", "-k", "vae")
    assert done.returncode == 130, done.stderr
    now = {w["name"]: w for w in store.load(path)["workloads"]}
    assert now.keys() == had.keys()
    assert [name for name in had if now[name] != had[name]] == ["newton"]  # measured again
    assert all(name in done.stdout for name in ("deep", "newton"))
