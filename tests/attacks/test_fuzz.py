"""Random calls of every public function, in a process of their own: a crash is a failure with a name."""

import os
import subprocess
import sys

import numpy as np
import pytest

import static
from tests.conftest import ROOT
from tests.helpers import fuzz
from tests.helpers.fuzz_arguments import Call
from tests.helpers.proofs import first, share

SEEDS, PARTS = 2, 3


@pytest.mark.parametrize("number", first(1, range(SEEDS * PARTS)))
def test_both_engines_give_the_same_or_refuse_alike(number, tmp_path):
    """One call of each function of a part of all, per seed."""
    seed, part = divmod(number, PARTS)
    trace, names = tmp_path / "running", [name for name in fuzz.names() if share(name, PARTS) == part]
    command = [sys.executable, "-m", "tests.helpers.fuzz", "--seed", str(seed), "--calls", "1",
               "--only", ",".join(names), "--trace-file", str(trace)]  # fmt: skip
    done = subprocess.run(command, check=False, cwd=ROOT, env=dict(os.environ), capture_output=True, text=True)
    running = "" if done.returncode in (0, 1) else f"the process died in: {trace.read_text(encoding='utf-8')}"
    assert done.returncode == 0, f"{running}\n{done.stdout}\n{done.stderr[-3000:]}"


@pytest.mark.quick
def test_a_sample_in_this_process():
    """Of every tenth function; the processes above call all."""
    sample = [next(fuzz.calls(9, name)) for name in fuzz.names() if share(name, 10) == 0]
    assert [found for call in sample if (found := fuzz.complaint(call))] == []


def test_calls_are_the_same_on_every_run():
    texts = [[str(next(fuzz.calls(3, name))) for name in fuzz.names()] for _ in range(2)]
    assert texts[0] == texts[1]


def test_arguments_reach_results_often_enough():
    """A fuzzer whose calls are all refused proves nothing."""
    sample = [name for name in fuzz.names() if share(name, 10) == 0]
    outcomes = [fuzz.run(next(fuzz.calls(1, name)))["dynamic"].error is None for name in sample]
    assert sum(outcomes) > len(outcomes) / 3


class Broken:
    """An engine whose function is wrong in one way."""

    def __init__(self, f):
        self.relu = f


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (lambda x: np.asarray(static.relu(x)) + 1e-7, "results differ"),
        (lambda x: x.no_such_attribute, "none of the package"),
        (lambda x: static.zeros(-1), "one refuses"),
    ],
)
def test_the_fuzzer_sees(f, words, monkeypatch):
    monkeypatch.setattr(fuzz, "static", Broken(f))
    call = Call("relu", [np.ones(3, np.float32)], {})
    assert words in fuzz.complaint(call)
