"""Measurements in processes of their own: memory, and one-off cost through the real child."""

import subprocess
import sys

import pytest

from benchmarks import machine, oneoff, peak_memory
from benchmarks.bootstrap import ROOT


def peak_of(code):
    code = f"from benchmarks import peak_memory as memory; {code}; print(memory.peak())"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return int(done.stdout)


def test_peak_memory_is_the_childs_own():
    ballast = bytearray(300_000_000)
    for i in range(0, len(ballast), 4096):
        ballast[i] = 1  # resident in the parent
    if not peak_memory.STATUS.is_file():
        assert "ru_maxrss" in peak_memory.method()
        return
    assert peak_memory.peak() > 300_000_000
    assert peak_of("pass") < 200_000_000


def test_peak_memory_remembers_what_was_freed():
    extra = peak_of("x = bytearray(100_000_000); x[::4096] = b'1' * len(x[::4096]); del x") - peak_of("pass")
    assert 90_000_000 <= extra <= 130_000_000


def test_a_failing_process_says_why(tmp_path):
    with pytest.raises(oneoff.ChildError, match="No module named 'no_such_engine'"):
        oneoff.fresh_process("no_such_engine", "e-tiny-mlp", str(tmp_path))


def test_only_the_run_that_leaves_its_cache_makes_further_steps(monkeypatch):
    runs = []
    monkeypatch.setattr(oneoff, "fresh_process", lambda *given: runs.append(given[2:]) or {"run": len(runs)})
    found = oneoff.cold_and_disk("static", "f", 3, 2)
    assert found == {"cold": [{"run": 1}, {"run": 2}, {"run": 3}], "disk": [{"run": 4}, {"run": 5}]}
    caches, last = [cache for cache, *_ in runs[:3]], runs[2][0]
    assert len(set(caches)) == 3
    assert [steps for _, *steps in runs] == [[0], [0], [oneoff.STEPS], [], []]
    assert [cache for cache, *_ in runs[3:]] == [last, last]


def test_one_off_cost_is_the_sum_of_its_parts():
    found = {
        "import_seconds": 0.1,
        "build_seconds": 0.2,
        "first_call_seconds": 0.3,
        "second_call_seconds": 9.0,
    }
    assert oneoff.once([found]).tolist() == [pytest.approx(0.6)]


def test_machine_names_what_a_figure_depends_on():
    about = machine.describe()
    assert about["cpu"]
    assert about["cores"] >= 1
    assert about["packages"]["numpy"]
    assert about["numerics_version"] >= 1
    assert about["cpu"] in machine.one_line(about)
