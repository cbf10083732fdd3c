import dataclasses
import json
import math
from argparse import Namespace

import numpy as np
import pytest

from benchmarks import oneoff, peers, report, run, store
from benchmarks.lab import stability
from benchmarks.lab.activity import Activity
from benchmarks.lab.agreement import Agreement
from tests.benchmarks.fakes import FakeWorkload, pair

EFFORT = run.Effort(seconds=0.02, cold=1, disk=1)
ABOUT = {"cpu": "an abacus", "cores_in_machine": 2, "system": "none", "python": "3.11", "packages": {},
         "twingrad": "0.1.0", "numerics_version": 1}  # fmt: skip


def start(seconds, peak=5e6):
    return {
        "import_seconds": 0.1,
        "build_seconds": 0.0,
        "first_call_seconds": seconds - 0.1,
        "peak_bytes": peak,
    }


@pytest.fixture(autouse=True)
def a_quiet_machine(monkeypatch):
    real = stability.objections
    monkeypatch.setattr(stability, "objections", lambda calls, activity: real({}, activity))
    monkeypatch.setattr(run, "Watch", lambda: Namespace(since=lambda: Activity(0.0, 0.0, 1.0)))


@pytest.fixture
def no_processes(monkeypatch):
    cost = {"dynamic": 0.2, "static": 0.6}
    fake = lambda engine, *_: {"cold": [start(cost[engine])], "disk": [start(cost[engine] / 2)]}  # noqa: E731
    monkeypatch.setattr(oneoff, "cold_and_disk", fake)


def test_equal_bits_are_measured(no_processes):
    result = run.measure(FakeWorkload(), pair(), EFFORT)
    assert result.passed
    assert set(result.calls) == {"dynamic", "static"}
    assert result.once("static", "cold").value == pytest.approx(0.6)
    page = report.text([result], ABOUT, [])
    assert "| fake     | equal |" in page
    assert "an abacus" in page
    assert "5 MB" in page


def test_a_difference_suppresses_every_timing(no_processes):
    result = run.measure(FakeWorkload(), pair(error=1e-15), EFFORT)
    assert not result.passed
    assert not result.calls
    assert not result.starts
    page = report.text([result], ABOUT, [])
    row = next(line for line in page.splitlines() if line.startswith("| fake"))
    assert [cell.strip() for cell in row.strip("|").split("|")] == ["fake", "differ", "-", "-", "-"]
    assert "BITS DIFFER: step 3: loss" in page
    assert json.loads(json.dumps(result.as_json(), allow_nan=False))["bits_equal"] is False


def test_a_failing_workload_is_reported_and_ends_nothing(no_processes, capsys):
    result = run.measure(FakeWorkload(), pair(fails=True), EFFORT)
    assert not result.passed
    assert result.error == "ValueError: no such kernel"
    assert "failed" in report.text([result], ABOUT, [])
    assert 'fakes.py", line' in capsys.readouterr().err


def test_never_is_an_answer(no_processes):
    result = run.measure(FakeWorkload(), pair(), EFFORT)
    result.calls = {"dynamic": np.full(9, 1e-6), "static": np.full(9, 2e-6)}
    assert result.break_even("cold").value == math.inf
    assert " never |" in report.text([result], ABOUT, [])
    assert result.as_json()["break_even"]["cold"]["value"] is None


def test_peers_get_columns(no_processes):
    result = run.measure(FakeWorkload(), pair(), EFFORT)
    result.calls |= {"jax.jit": 2 * result.calls["static"], "torch": 4 * result.calls["dynamic"]}
    page = report.text([result], ABOUT, ["jax.jit", "torch", "torch.compile"])
    tables = [line for line in page.splitlines() if line.startswith("|")]
    header, _, row = tables[3:6]
    cells = dict(zip(*([c.strip() for c in line.strip("|").split("|")] for line in (header, row)), strict=True))
    assert cells["jax.jit"] == "2.0x"
    assert cells["dynamic : torch"] == "4.0x"
    assert "torch.compile" not in cells  # no figure, no column
    assert max(map(len, page.splitlines())) <= 80
    page = page.replace("\n", " ")
    assert "jax.jit 2.00 (1), torch" in page


def test_bits_that_peers_share_are_a_column_and_wide_tables_are_divided(no_processes):
    result = run.measure(FakeWorkload(), pair(), EFFORT)
    peers = [f"a peer of number {i}" for i in range(6)]
    result.calls |= dict.fromkeys(peers, result.calls["static"])
    result.agreement = {peers[0]: Agreement(2e-7), peers[5]: Agreement(3e-7, shared=0.975)}
    page = report.text([result], ABOUT, peers)
    assert max(map(len, page.splitlines())) <= 80
    assert " 3e-07, 98 % |" in page
    heads = [line for line in page.splitlines() if line.startswith("| workload")]
    assert all(sum(peer in head for head in heads) == 2 if peer in (peers[0], peers[5]) else 1 for peer in peers)


class Broken:
    """A peer that fails, beside one that computes something else."""

    @staticmethod
    def build(peer, workload, initial):
        if peer == "broken":
            raise TypeError("no such op\nand more")
        return lambda x: np.asarray(7.0), workload.inputs()


def test_peers_that_fail_or_disagree_are_named_and_not_timed(no_processes, monkeypatch, capsys):
    monkeypatch.setattr(peers, "PEERS", {name: peers.Peer("numpy", name) for name in ("broken", "wrong")})
    monkeypatch.setattr(peers, "build", Broken.build)
    result = run.measure(FakeWorkload(), pair(), EFFORT, ["broken", "wrong"])
    assert result.calls.keys() == {"dynamic", "static"}
    assert "fake: broken does not run it: TypeError: no such op\n" in capsys.readouterr().err
    assert result.agreement["wrong"].error.startswith("is not timed: it differs")


def test_a_peer_that_every_round_would_wait_for_is_compared_and_not_timed(no_processes, monkeypatch):
    monkeypatch.setattr(run, "SLOWEST", 0.0)
    monkeypatch.setattr(peers, "PEERS", {"right": peers.Peer("numpy", "right")})
    monkeypatch.setattr(peers, "build", lambda peer, workload, initial: (lambda x: -x.sum(), workload.inputs()))
    result = run.measure(FakeWorkload(), pair(), EFFORT, ["right"])
    assert result.calls.keys() == {"dynamic", "static"}
    found = result.agreement["right"]
    assert found.distance == 0.0
    assert found.error.startswith("is not timed: a call takes ")


def test_a_second_call_that_compiles_again_does_not_make_a_peer_slow(monkeypatch):
    taken = iter([9.0, 0.3, 0.1])
    monkeypatch.setattr(run, "batch", lambda call, inputs, repeats: next(taken))
    assert run.quickest(None, []) == 0.1


def test_a_run_goes_on_with_what_its_record_holds(no_processes, tmp_path):
    result = run.measure(FakeWorkload(), pair(), EFFORT)
    result.agreement = {"torch": Agreement(1e-7, 0.5, 2.0)}
    begun = {"machine": {"commit": "abc", "cpu": "c", "packages": {}}, "quick": False, "threads": 1}
    path = tmp_path / "run.json"
    failed = {**result.as_json(), "key": "other", "error": "no memory"}
    unstable = {**result.as_json(), "key": "third", "unstable": ["times drifted: measure longer"]}
    store.save(path, {**begun, "workloads": [result.as_json(), failed, unstable]})
    assert store.resumed(None, path, begun) == (path, {}, {})
    where, finished, had = store.resumed(str(path), None, begun)
    assert (where, list(finished), list(had)) == (path, ["fake"], ["fake", "third"])
    again = {**unstable, "unstable": []}
    assert store.with_earlier([again], had) == [again, result.as_json()]
    assert store.with_earlier([], {}) == []
    again = run.Result.of_json(result.workload, finished["fake"])
    assert again.as_json() == result.as_json()
    assert report.text([again], ABOUT, []) == report.text([result], ABOUT, [])
    for change in ({"quick": True}, {"threads": 2}, {"machine": {**begun["machine"], "commit": "abd"}}):
        with pytest.raises(ValueError, match="this run has"):
            store.resumed(str(path), None, {**begun, **change})


@pytest.mark.parametrize(("unstable", "turns"), [(0, 1), (2, 3), (9, 4)])
def test_what_is_unstable_is_measured_again(unstable, turns, no_processes, monkeypatch):
    spans = []

    def interleave(calls, *_, **__):
        spans.append(len(spans))
        return {name: np.full(21, 1.0 + len(spans)) for name in calls}

    def objections(calls, _):
        return ["drifted"] if calls["static"][0] <= 1 + unstable else []

    monkeypatch.setattr(run, "interleave", interleave)
    monkeypatch.setattr(stability, "objections", objections)
    result = run.measure(FakeWorkload(), pair(), dataclasses.replace(EFFORT, again=3))
    assert len(spans) == turns
    assert result.call("static").value == 1.0 + turns  # the last time stands, whatever it says
    assert bool(result.unstable) == (unstable >= turns)


def test_the_short_table_has_a_line_per_workload_and_the_known_peers(no_processes):
    result = run.measure(FakeWorkload(), pair(), EFFORT)
    result.calls["dynamic"] = 3 * result.calls["static"]
    result.calls |= {"jax.jit": 2 * result.calls["static"], "another": result.calls["static"]}
    page = report.in_short([result], ABOUT, ["jax.jit", "another", "torch"])
    assert page.startswith("an abacus, one thread: time per call")
    header, _, row = ([c.strip() for c in line.strip("|").split("|")] for line in page.splitlines() if line[0:1] == "|")
    assert header == ["workload", "dynamic", "static", "as fast", "torch", "jax.jit"]
    assert (row[0], *row[3:]) == ("fake", "3.0x", "-", "2.0x")
    every = run.measure(FakeWorkload(), pair(), EFFORT)
    every.calls |= {"jax.jit": every.calls["static"], "torch": every.calls["static"]}
    page = report.in_short([result, every], ABOUT, ["jax.jit", "torch"])  # the row that torch does not have is left out
    assert "that some of these do not run (1)." in " ".join(page.split())
    assert sum(line.startswith("| fake") for line in page.splitlines()) == 1
    result.activity, result.clock = Activity(1.5, 0.0, 1.0), "wall"
    page = report.in_short([result, run.measure(FakeWorkload(), pair(error=1e-15), EFFORT)], ABOUT, [], threads=2)
    assert page.startswith("UNSTABLE: other processes kept 1.5 cores busy")
    assert "2 threads" in page
    assert [c.strip() for c in page.splitlines()[-1].strip("|").split("|")] == ["fake", "-", "-", "-"]


def test_the_mean_over_workloads_is_that_of_the_fastest_peers(no_processes):
    results = [run.measure(FakeWorkload(), pair(), EFFORT) for _ in range(2)]
    for result, first, second in zip(results, (2, 8), (4, 4), strict=True):
        result.calls |= {"jax.jit": first * result.calls["static"], "torch": second * result.calls["static"]}
    page = report.text(results, ABOUT, ["jax.jit", "torch"]).replace("\n", " ")
    assert "jax.jit 4.00 (2), torch 4.00 (2); as the fastest peer of each workload 2.83 (2)." in page


def test_an_unstable_run_says_so_first_and_has_no_mean(no_processes):
    result = run.measure(FakeWorkload(), pair(), EFFORT)
    result.calls |= {"torch": 4 * result.calls["dynamic"]}
    result.activity, result.clock = Activity(1.5, 0.0, 1.0), "wall"
    page = report.text([result], ABOUT, ["torch"])
    assert page.startswith("UNSTABLE: other processes kept 1.5 cores busy")
    assert "geometric mean" not in page
    assert "No mean over workloads: 1 of 1 are unstable." in page
    assert result.as_json()["unstable"][0].startswith("other processes")
    twice = " ".join(report.text([result, result], ABOUT, []).split())
    assert twice.count("- what to do: end them") == 1  # after the first line, each remedy once
    assert "- `fake` UNSTABLE: other processes kept 1.5 cores busy" in twice


def test_calls_alone_start_no_process(monkeypatch):
    monkeypatch.setattr(oneoff, "cold_and_disk", lambda *_: pytest.fail("a process was started"))
    result = run.measure(FakeWorkload(), pair(), run.without_starts(EFFORT))
    assert result.passed
    page = report.text([result], ABOUT, [], threads=2)
    assert "2 threads; medians" in page.replace("\n", " ")
    assert "pays off" not in page


def test_record_survives_the_disk(no_processes, tmp_path):
    result = run.measure(FakeWorkload(), pair(), EFFORT)
    path = tmp_path / "new" / "run.json"
    store.save(path, {"machine": ABOUT, "workloads": [result.as_json()]})
    record = store.load(path)
    assert record["workloads"][0]["title"] == "w -= x"
    assert record["machine"]["cpu"] == "an abacus"
    assert [p.name for p in path.parent.iterdir()] == ["run.json"]


def test_table_goes_between_the_markers(tmp_path):
    page = tmp_path / "README.md"
    page.write_text(f"before\n{report.MARKERS[0]}\nold\n{report.MARKERS[1]}\nafter\n")
    report.insert(page, "new")
    assert page.read_text() == f"before\n{report.MARKERS[0]}\nnew\n\n{report.MARKERS[1]}\nafter\n"
    report.insert(page, "newer")
    assert "new\n" not in page.read_text().replace("newer\n", "")


def test_page_without_markers_is_left_alone(tmp_path):
    page = tmp_path / "README.md"
    page.write_text("nothing here\n")
    with pytest.raises(ValueError, match="has no lines"):
        report.insert(page, "new")
    assert page.read_text() == "nothing here\n"
