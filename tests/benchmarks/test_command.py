"""``python3 -m benchmarks`` as a user runs it, on the smallest workload."""

import json
import subprocess
import sys

import pytest

from benchmarks import __main__ as command
from benchmarks import bits, cache, measure, report, run, store
from benchmarks.bootstrap import ROOT
from common.compiler import disk_cache


def benchmarks(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_quick_run(tmp_path):
    path = tmp_path / "run.json"
    done = benchmarks("--quick", "-k", "e-tiny-mlp", "--json", str(path))
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if line.startswith("| e-tiny-mlp")]
    assert len(rows) == 3
    assert "equal" in rows[0]
    assert "bits over 20 steps" in done.stderr
    (workload,) = store.load(path)["workloads"]
    assert workload["bits_equal"] is True
    assert workload["call"]["static"]["value"] > 0
    assert workload["once"]["static"].keys() == {"cold", "disk"}
    assert workload["peak_bytes"]["dynamic"] > 10_000_000


def test_list_names_every_workload():
    done = benchmarks("--list")
    assert done.returncode == 0
    assert {"digits", "charlm", "chain"} <= {line.split()[0] for line in done.stdout.splitlines()}


def test_unknown_workload_is_an_error():
    done = benchmarks("-k", "nonsense")
    assert done.returncode == 2
    assert "no workload's name contains 'nonsense'" in done.stderr
    assert done.stdout == ""


def test_cache_and_ready_made_kernels_are_shown_and_emptied(tmp_path, monkeypatch, capsys):
    kept, beside = tmp_path / "cache", tmp_path / "beside"
    monkeypatch.setenv("TWINGRAD_CACHE", str(kept))
    monkeypatch.setattr(disk_cache, "ready_made_directory", lambda: beside)
    for folder, ready_made in ((kept, False), (beside, True)):
        folder.mkdir(mode=0o700)
        (folder / "notes.txt").write_text("not an entry")
        for key in ("ab" * 32, "cd" * 32):
            disk_cache.write(key, disk_cache.Entry("symbol", (), b"code" * 1000), ready_made)
    assert cache.main([]) == 0
    shown = capsys.readouterr().out
    assert f"{kept}: 2 entries, 0.0 MiB of at most 512 MiB" in shown
    assert f"{beside}: 2 entries, 0.0 MiB of at most {disk_cache.READY_MADE_BYTES >> 20} MiB" in shown
    assert cache.main(["--clear"]) == 0
    assert capsys.readouterr().out.count("2 entries, 0.0 MiB removed") == 2
    assert [path.name for folder in (kept, beside) for path in folder.iterdir()] == ["notes.txt"] * 2
    assert benchmarks("cache").stdout.startswith(f"{kept}: 0 entries")


@pytest.fixture
def in_process(monkeypatch, tmp_path):
    monkeypatch.setattr(measure, "keep_to", lambda count: [])  # the test process keeps its cores
    monkeypatch.setattr(run, "QUICK", run.Effort(seconds=0.01, cold=1, disk=1))
    path = tmp_path / "run.json"
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--quick", "-k", "e-tiny-mlp", "--json", str(path)])
    return path


def test_one_wrong_bit_ends_with_1_and_no_timing(in_process, monkeypatch, capsys):
    monkeypatch.setattr(bits, "mismatches", lambda *_: ["step 3: loss: 1 of 1 elements"])
    assert command.main() == 1
    output = capsys.readouterr()
    assert "differ" in output.out
    assert " us" not in output.out
    assert " ms" not in output.out
    (workload,) = json.loads(in_process.read_text())["workloads"]
    assert workload["bits_equal"] is False
    assert workload["seconds_per_call"] == {}


@pytest.mark.slow
def test_results_that_cannot_be_written_are_still_shown(in_process, capsys):
    in_process.parent.rmdir()
    in_process.parent.write_text("a file where a folder should be")
    assert command.main() == 1
    output = capsys.readouterr()
    assert "| e-tiny-mlp | equal |" in output.out
    assert "could not be written" in output.err


def test_a_page_without_markers_is_refused_at_once(in_process, monkeypatch, capsys, tmp_path_factory):
    page = tmp_path_factory.mktemp("page") / "page.md"
    page.write_text("no markers")
    monkeypatch.setattr(sys, "argv", [*sys.argv, "--readme", str(page)])
    assert command.main() == 2
    output = capsys.readouterr()
    assert "has no lines" in output.err
    assert output.out == ""


@pytest.mark.slow
def test_a_failed_run_does_not_replace_the_published_table(in_process, monkeypatch, capsys, tmp_path_factory):
    page = tmp_path_factory.mktemp("page") / "page.md"
    published = "\n".join([report.MARKERS[0], "old", report.MARKERS[1]])
    page.write_text(published)
    longer = page.with_name("results.md")
    longer.write_text(published)
    monkeypatch.setattr(sys, "argv", [*sys.argv, "--readme", str(page), "--results", str(longer)])
    monkeypatch.setattr(bits, "mismatches", lambda *_: ["step 3: loss: 1 of 1 elements"])
    assert command.main() == 1
    monkeypatch.setattr(bits, "mismatches", lambda *_: [])
    assert (page.read_text(), longer.read_text()) == (published, published)
    assert command.main() == 0
    assert "| e-tiny-mlp |" in page.read_text()
    assert "equal" not in page.read_text()
    assert "| e-tiny-mlp | equal |" in longer.read_text()
