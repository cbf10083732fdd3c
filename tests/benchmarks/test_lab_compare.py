"""Comparing runs and programs, the doctor, and the export: verdicts that a gate can rely on."""

import json

import numpy as np
import pytest

import dynamic
import static
from benchmarks import store
from benchmarks.lab import activity, comparing, doctor, exporting
from benchmarks.lab import command as laboratory
from benchmarks.lab.activity import Activity
from benchmarks.lab.agreement import agreement, of_json

ROUNDS = 64


def record(seed, factor=1.0, noise=0.005, drift=0.0, unstable=()):
    """A run of two engines with noise of its own, on a machine that was up to `drift` slower."""
    rng = np.random.default_rng(seed)
    machine = np.exp(drift * rng.random() + np.cumsum(rng.standard_normal(ROUNDS)) * noise / 8)
    rounds = {
        name: (value * machine * np.exp(noise * rng.standard_normal(ROUNDS))).tolist()
        for name, value in (("dynamic", 1e-3), ("static", 1e-4 * factor), ("probe: python", 1e-5))
    }
    probe = {"probe: python": rounds.pop("probe: python")}
    workload = {"name": "f", "key": "f", "seconds_per_call": rounds, "probes": probe, "unstable": list(unstable)}
    return {"schema": 2, "workloads": [workload]}


def test_none_of_twenty_equal_runs_differ():
    told = [c.verdict() for i in range(20) for c in comparing.changes(record(i, drift=0.2), record(i + 100, drift=0.2))]
    assert told == ["same"] * 40


def test_a_planted_slowdown_of_five_percent_is_found_in_each_of_twenty_runs():
    for i in range(20):
        dynamic, static = comparing.changes(record(i, drift=0.2), record(i + 100, factor=1.05, drift=0.2))
        assert (dynamic.verdict(), static.verdict()) == ("same", "slower")
        assert static.ratio == pytest.approx(1.05, abs=0.015)
        assert comparing.changes(record(i, factor=1.05), record(i + 100))[1].verdict() == "faster"


def test_nothing_is_significant_where_rounds_scatter():
    assert {
        c.verdict() for i in range(20) for c in comparing.changes(record(i, noise=0.5), record(i + 100, 1.05, 0.5))
    } == {"same"}


def test_paired_rounds_find_five_percent_under_any_load():
    rng = np.random.default_rng(0)
    for _ in range(10):
        builds = []
        for _ in range(comparing.BUILDS):
            load = np.exp(np.abs(rng.standard_normal(40)))
            builds.append(tuple(load * np.exp(0.02 * rng.standard_normal(40)) for _ in range(2)))
        assert comparing.paired("f", "static", builds, 0.01).verdict() == "same"
        slower = [(first, 1.05 * second) for first, second in builds]
        assert comparing.paired("f", "static", slower, 0.01).verdict() == "slower"


def test_where_arrays_lie_is_no_difference_between_programs():
    """A build is three percent slower for as long as it lives, in every one of its rounds."""
    rng, told = np.random.default_rng(1), []
    for _ in range(200):
        places = np.exp(0.03 * rng.standard_normal((comparing.BUILDS, 2)))
        builds = [tuple(place * np.exp(0.002 * rng.standard_normal(40)) for place in both) for both in places]
        told.append(comparing.paired("f", "static", builds, 0.01).verdict())
    assert told.count("same") >= 198


@pytest.mark.parametrize(
    ("factor", "code", "told"), [(1.0, 0, "No difference"), (1.2, 1, "got slower"), (0.8, 0, "got faster")]
)
def test_the_exit_code_is_for_gates(tmp_path, capsys, factor, code, told):
    for name, made in (("a.json", record(1)), ("b.json", record(2, factor))):
        store.save(tmp_path / name, made)
    assert laboratory.main("compare", [str(tmp_path / "a.json"), str(tmp_path / "b.json")]) == code
    lines = capsys.readouterr().out.splitlines()
    assert told in lines[0]
    assert max(map(len, lines)) <= 80


def test_unstable_runs_are_named_and_strictly_refused(tmp_path, capsys):
    store.save(tmp_path / "a.json", record(1))
    store.save(tmp_path / "b.json", record(2, unstable=["other processes kept 2 cores busy: end them"]))
    paths = [str(tmp_path / "a.json"), str(tmp_path / "b.json")]
    assert laboratory.main("compare", paths) == 0
    assert capsys.readouterr().out.startswith("UNSTABLE: b.json: f: other processes")
    assert laboratory.main("compare", [*paths, "--strict"]) == 3


def test_runs_that_have_nothing_in_common_are_refused(tmp_path, capsys):
    other = record(2)
    other["workloads"][0]["name"] = "g"
    few = record(3)
    few["workloads"][0]["seconds_per_call"] = {"static": [1e-3] * 5}
    few["workloads"][0]["probes"] = {}
    for name, made in (("a", record(1)), ("b", other), ("c", few)):
        store.save(tmp_path / name, made)
    assert laboratory.main("compare", [str(tmp_path / "a"), str(tmp_path / "b")]) == 2
    assert "no program of the same name: f and g" in capsys.readouterr().err
    assert laboratory.main("compare", [str(tmp_path / "a"), str(tmp_path / "c")]) == 2
    assert "5 rounds, comparing needs 16" in capsys.readouterr().err


def test_two_programs_are_timed_in_turns(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("benchmarks.measure.keep_to", lambda count: [])
    (tmp_path / "one.py").write_text("def f(x):\n    return (x @ x).sum()\n")
    (tmp_path / "two.py").write_text("def f(x):\n    for _ in range(40):\n        x = x @ x\n    return x.sum()\n")
    words = [f"{tmp_path}/one.py:f", f"{tmp_path}/two.py:f", "--args", "f32[48,48]", "--seconds", "0.1"]
    assert laboratory.main("compare", words) == 1
    assert "static on one:f -> two:f is 0." in capsys.readouterr().out.replace("\n  ", " ")


def test_the_doctor_recognises_a_loaded_machine(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "look", lambda seconds: Activity(1.7, 0.1, seconds))
    assert laboratory.main("doctor", ["--seconds", "0"]) == 1
    output = capsys.readouterr().out
    assert output.startswith("Figures of this machine are unreliable: load: other processes keep 1.7")
    assert "end them" in output
    assert "host takes 10 %" in output
    assert max(map(len, output.splitlines())) <= 80


def test_the_doctor_finds_nothing_on_a_quiet_machine(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "look", lambda seconds: Activity(0.0, 0.0, seconds))
    monkeypatch.setattr(doctor, "_clock", lambda: iter([doctor.Finding("clock: governor 'performance'")]))
    assert laboratory.main("doctor", ["--seconds", "0"]) == 0
    assert capsys.readouterr().out.startswith("Nothing here makes figures unreliable.")


def test_the_doctor_tells_of_flushed_denormals(monkeypatch):
    monkeypatch.setattr(doctor.np, "full", lambda *_: np.zeros(4, np.float32))  # what a flushed product gives
    (found,) = doctor._denormals()
    assert "flushed to zero" in found.what
    assert found.remedy


def test_others_are_told_from_this_process(tmp_path, monkeypatch):
    stat = tmp_path / "stat"
    monkeypatch.setattr(activity, "STAT", stat)
    monkeypatch.setattr(activity, "_own", lambda: 0.0)
    stat.write_text("cpu  0 0 0 0 0 0 0 0 0 0\n")
    watch = activity.Watch()
    stat.write_text("cpu  50 0 0 40 0 0 0 10 0 0\n")
    found = watch.since()
    assert found.stolen == pytest.approx(0.1)
    assert found.others == pytest.approx(0.5 * activity.os.cpu_count())
    stat.unlink()
    assert activity.Watch().since().others is None


def test_peers_are_compared_with_us_and_with_their_own_eager_mode():
    x = np.array([1.0, 2.0, 4.0], np.float32)
    near = np.nextafter(x, np.float32(9))
    values = {"dynamic": x, "static": x, "torch": (near,), "torch.compile": [np.append(near[:2], x[2])], "jax": x[:2]}
    calls = {name: (lambda value=value: value, [()]) for name, value in values.items()}
    calls |= {"wrong": (lambda: x + 1, [()]), "broken": (lambda: x @ np.eye(2), [()])}
    told = agreement(calls, {"torch.compile": calls["torch"]}.get)
    assert told["torch"].line() == "agrees with dynamic to 1.2e-07 of the largest element"
    assert told["torch.compile"].line().endswith("; 66.7 % of its elements have the bits of its own eager mode")
    assert "not compared" in told["jax"].line()
    assert told["wrong"].error == "is not timed: it differs from dynamic by 2.5e-01 of the largest element"
    assert told["broken"].error.startswith("does not run it: ValueError: matmul")
    assert of_json(json.loads(json.dumps({name: found.as_json() for name, found in told.items()}))) == told


def test_a_program_that_draws_is_not_compared_with_peers():
    calls = {"dynamic": (lambda: dynamic.randn(3), [()]), "torch": (lambda: np.ones(3), [()])}
    told = agreement(calls)
    assert told["torch"].line() == "draws other random numbers, so it is not compared"
    assert not told["torch"].error


def test_pyperf_reads_an_export(tmp_path, capsys):
    made = {**record(1), "machine": {"cpu": "c", "cores_in_machine": 2, "system": "s", "python": "p", "twingrad": "0"}}
    store.save(tmp_path / "a.json", made)
    assert laboratory.main("export", [str(tmp_path / "a.json")]) == 0
    suite = json.loads(capsys.readouterr().out)
    assert suite["version"] == exporting.VERSION
    assert [b["metadata"]["name"] for b in suite["benchmarks"]] == ["f dynamic", "f static"]
    assert len(suite["benchmarks"][0]["runs"][0]["values"]) == ROUNDS


PROGRAMS = """
import dynamic as tw

def scaled(x):
    return (x * 2).tanh()

class Answer(tw.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = tw.nn.Linear(3, 2)
    def forward(self, x):
        return self.inner(x)

def asked(x):
    return tw.pure_callback(lambda x: x, tw.ShapeDtypeStruct((2,), tw.float32), x)
"""


def test_a_program_is_written_in_the_form_that_the_ending_names(tmp_path, capsys):
    (tmp_path / "mine.py").write_text(PROGRAMS)
    for name, more, ending in (("scaled", [], ".py"), ("scaled", ["--grad"], ".tw"), ("Answer", [], ".tw"),
                               ("Answer", ["--optimizer", "SGD(lr=0.1)"], ".py")):  # fmt: skip
        to = tmp_path / f"{name}{len(more)}{ending}"
        assert laboratory.main("export", [f"{tmp_path}/mine.py:{name}", "--args", "f32[n,3]", "--size", "n=4",
                                          "--to", str(to), *more]) == 0  # fmt: skip
        assert capsys.readouterr().out.strip() == str(to)
    assert "def scaled(x0):" in (tmp_path / "scaled0.py").read_text()
    assert "def Answer(x0, " in (tmp_path / "Answer2.py").read_text()
    x = np.full((2, 3), 0.5, np.float32)
    value, gradient = static.load(tmp_path / "scaled1.tw")(x)
    assert np.allclose(value, np.tanh(x * 2).sum())
    assert np.allclose(gradient, 2 * (1 - np.tanh(x * 2) ** 2))
    answer = static.load(tmp_path / "Answer0.tw")
    assert answer(x).shape == (2, 2)
    assert len(list(answer.parameters())) == 2
    mine = f"{tmp_path}/mine.py"
    for wrong, told in (
        ([f"{mine}:scaled", "--args", "f32[3]"], "--to mine.so"),
        ([f"{mine}:scaled", "--to", "x.exe"], "ends in .so"),
        ([f"{mine}:asked", "--args", "f32[2]", "--to", "x.py"], "calls Python"),
    ):
        assert laboratory.main("export", wrong) == 2
        assert told in capsys.readouterr().err
