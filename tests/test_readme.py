"""The README's script runs in both engines as it is printed, with equal bits."""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import report
from benchmarks.bits import difference, unequal
from benchmarks.workload import to_array
from benchmarks.workloads import digits
from benchmarks.workloads.digits import batches

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
SCRIPT = re.findall(r"```python\n(.*?)```", README, re.DOTALL)[0]
STEPS = 50


def run(engine, monkeypatch):
    """Run the script with `engine` step by step; return the loss and the parameters after each."""
    tw = importlib.import_module(engine)
    tw.manual_seed(0)
    history, space = [], {}

    def feed():
        data = batches()
        for i in range(STEPS):
            yield data[i % len(data)]
            state = {name: to_array(p).copy() for name, p in space["model"].named_parameters()}
            history.append((to_array(space["loss"]).copy(), state))

    monkeypatch.setattr(digits, "batches", feed)
    exec(SCRIPT.replace("import dynamic as tw", f"import {engine} as tw"), space)
    return history


def test_same_script_same_bits(monkeypatch):
    first, second = run("dynamic", monkeypatch), run("static", monkeypatch)
    assert len(first) == len(second) == STEPS
    for step, ((loss, state), (other_loss, other_state)) in enumerate(zip(first, second, strict=True)):
        assert difference(loss, other_loss) is None, step
        assert list(unequal(f"step {step}", state, other_state)) == []
    assert first[-1][0] < 0.5 * first[0][0]  # it learns


@pytest.mark.parametrize("engine", ["dynamic", "static"])
def test_the_script_runs_as_it_stands(engine, tmp_path):
    """Copied to a file, with nothing added, and with the other import that it names."""
    assert "import dynamic as tw  # or: import static as tw\n" in SCRIPT
    (tmp_path / "script.py").write_text(SCRIPT.replace("import dynamic as tw", f"import {engine} as tw"))
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    (loss,) = re.findall(r"\d\.\d+", done.stdout)
    assert 0 < float(loss) < 1


@pytest.mark.parametrize("link", re.findall(r"\]\((?!http)([^)#]+)\)", README))
def test_links_lead_somewhere(link):
    assert (ROOT / link).exists()


def test_it_is_short_and_its_one_table_fits_a_terminal():
    lines = README.splitlines()
    assert len(lines) <= 150
    table = [line for line in lines if line.startswith("|")]
    assert max(map(len, table)) <= 80
    assert sum(line.startswith("|--") for line in table) == 1


def test_a_run_finds_where_its_results_go():
    for page in (ROOT / "README.md", ROOT / "docs" / "results.md"):
        before, after = report.around(page)
        assert (before[-3:], after[:4]) == ("-->", "<!--")
