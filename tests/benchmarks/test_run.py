import json
import math
from argparse import Namespace

import numpy as np
import pytest

from benchmarks import oneoff, report, run, store
from benchmarks.lab import stability
from benchmarks.lab.activity import Activity
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
    assert "Traceback" in capsys.readouterr().err


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
    assert cells["torch.compile"] == "-"
    assert max(map(len, page.splitlines())) <= 80
    page = page.replace("\n", " ")
    assert "jax.jit 2.00 (1), torch" in page


def test_the_short_table_has_a_line_per_workload_and_the_known_peers(no_processes):
    result = run.measure(FakeWorkload(), pair(), EFFORT)
    result.calls["dynamic"] = 3 * result.calls["static"]
    result.calls |= {"jax.jit": 2 * result.calls["static"], "another": result.calls["static"]}
    page = report.in_short([result], ABOUT, ["jax.jit", "another", "torch"])
    assert page.startswith("an abacus, one thread: time per call")
    header, _, row = ([c.strip() for c in line.strip("|").split("|")] for line in page.splitlines() if line[0:1] == "|")
    assert header == ["workload", "dynamic", "static", "as fast", "torch", "jax.jit"]
    assert (row[0], *row[3:]) == ("fake", "3.0x", "-", "2.0x")
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
