import os
import subprocess
import sys

import numpy as np
import pytest

from benchmarks import measure
from benchmarks.bootstrap import ROOT
from benchmarks.lab import stability


class Recorder:
    """A program that takes so many seconds of a clock that only programs move."""

    now = 0.0

    def __init__(self, log, name, seconds=0.0002, first=0.0):
        self.log, self.name, self.seconds, self.first = log, name, seconds, first

    def __call__(self, argument):
        Recorder.now += self.first or self.seconds
        self.first = 0.0
        self.log.append((self.name, argument))


@pytest.fixture(autouse=True)
def a_clock_of_our_own(monkeypatch):
    monkeypatch.setitem(measure.CLOCKS, "wall", lambda: Recorder.now)


def test_batches_are_long_enough_and_inputs_alternate():
    log = []
    call = Recorder(log, "a")
    repeats = measure.calibrate(call, [(1,), (2,)], seconds=0.004)
    assert 0.004 <= repeats * 2 * call.seconds < 0.006
    assert [argument for _, argument in log[:6]] == [1, 2, 1, 2, 1, 2]


def test_first_calls_are_not_measured():
    call = Recorder([], "a", first=0.2)  # as if it compiled
    samples = measure.interleave({"a": (call, [(1,)])}, seconds=0.02, batch_seconds=0.001)["a"]
    assert samples == pytest.approx(0.0002)


def test_programs_take_turns_in_alternating_order():
    log = []
    calls = {name: (Recorder(log, name, seconds=0.002), [(0,)]) for name in "ab"}
    samples = measure.interleave(calls, seconds=0, minimum=4, batch_seconds=0.001)
    assert [len(samples[name]) for name in "ab"] == [4, 4]
    assert [name for name, _ in log[-8:]] == list("abbaabba")


def test_time_is_per_call():
    call = Recorder([], "a", seconds=0.001)
    samples = measure.interleave({"a": (call, [(1,), (2,), (3,)])}, seconds=0.05, batch_seconds=0.002)["a"]
    assert samples == pytest.approx(0.001)


@pytest.mark.parametrize(("seconds", "expected"), [(0.0, 3), (60.0, 5)])
def test_rounds_stay_between_their_bounds(seconds, expected):
    call = Recorder([], "a")
    samples = measure.interleave({"a": (call, [(1,)])}, seconds, minimum=3, maximum=5, batch_seconds=0.0005)
    assert len(samples["a"]) == expected


@pytest.mark.parametrize(("noise", "expected"), [(0.0, 21), (0.1, 301)])
def test_rounds_end_when_the_ratio_is_known(noise, expected):
    rng = np.random.default_rng(0)
    calls = {name: (Recorder([], name, seconds=0.001), [(0,)]) for name in ("dynamic", "static", "torch")}
    noisy = calls["torch"][0]
    calls["torch"] = (lambda x: (setattr(noisy, "seconds", 0.001 * (1 + noise * rng.random())), noisy(x)), [(0,)])
    samples = measure.interleave(
        calls, 1e3, minimum=21, batch_seconds=0.001, enough=lambda found: stability.enough(found, 0.0001)
    )
    assert {len(found) for found in samples.values()} == {expected}


def test_the_idlest_core_is_taken(monkeypatch, tmp_path):
    readings = iter(["cpu 9 9 9 9\ncpu0 0 0 0 50\ncpu1 0 0 0 90\n", "cpu 9 9 9 9\ncpu0 0 0 0 59\ncpu1 0 0 0 91\n"])

    class Stat:
        is_file = staticmethod(lambda: True)
        read_text = staticmethod(lambda: next(readings))

    monkeypatch.setattr(measure, "STAT", Stat)
    assert measure.idlest_cores({0, 1}, seconds=0) == [0]
    monkeypatch.setattr(measure, "STAT", tmp_path / "none")
    assert measure.idlest_cores({0, 1, 2}) == [2]
    assert measure.idlest_cores({0, 1, 2}, 2) == [2, 1]


def test_one_core_and_one_thread():
    code = (
        "import os; from benchmarks.measure import single_core; core = single_core();"
        "seen = os.sched_getaffinity(0) if hasattr(os, 'sched_getaffinity') else {core};"
        "print(seen == {core}, os.environ['OPENBLAS_NUM_THREADS'])"
    )
    clean = {name: value for name, value in os.environ.items() if name not in measure.THREADS}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=clean, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "1"]
