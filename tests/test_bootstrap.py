"""The set-up of the two commands, run for real in a toy checkout with a pip that only takes notes."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks import bootstrap

ROOT = Path(__file__).resolve().parent.parent
BASE = Path(getattr(sys, "_base_executable", sys.executable))

COMMAND = """
import sys
from benchmarks.bootstrap import bootstrap
bootstrap("command", "test", NEEDS)
print("ran", sys.prefix != sys.base_prefix, sys.argv[1:])
"""
PIP = """
import json, os, sys
with open(os.environ["NOTES"], "a") as notes:
    notes.write(json.dumps(sys.argv[1:]) + "\\n")
print("noise of pip")
sys.exit(int(os.environ.get("PIP_FAILS", "0")))
"""


class Checkout:
    def __init__(self, root):
        self.root, self.notes = root, root / "notes"
        (root / "benchmarks").mkdir(parents=True)
        (root / "benchmarks" / "__init__.py").write_text("")
        shutil.copy(ROOT / "benchmarks" / "bootstrap.py", root / "benchmarks")
        shutil.copy(ROOT / "pyproject.toml", root)
        (root / "pip").mkdir()
        (root / "pip" / "__init__.py").write_text("")  # found before the real one
        (root / "pip" / "__main__.py").write_text(PIP)
        self.need("a_module_that_nobody_has")

    def need(self, module):
        (self.root / "command.py").write_text(COMMAND.replace("NEEDS", repr((module,))))

    def run(self, *arguments, python=BASE, **env):
        clean = {k: v for k, v in os.environ.items() if k not in ("TWINGRAD_NO_BOOTSTRAP", "PYTHONPATH")}
        return subprocess.run(
            [str(python), "-m", "command", *arguments], cwd=self.root, capture_output=True, text=True,
            check=False, env={**clean, "NOTES": str(self.notes), **env},
        )  # fmt: skip

    def pip_calls(self):
        return [json.loads(line) for line in self.notes.read_text().splitlines()] if self.notes.exists() else []

    @property
    def python(self):
        return self.root / ".venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


@pytest.fixture
def checkout(tmp_path):
    return Checkout(tmp_path / "a checkout")  # with a space in its path


def test_first_run_installs_and_re_executes(checkout):
    done = checkout.run("-k", "two words")
    assert done.stdout == "ran True ['-k', 'two words']\n"
    (call,) = checkout.pip_calls()
    assert call[-2:] == ["--editable", f"{checkout.root}[test]"]
    assert call[call.index("--python") + 1] == str(checkout.python)
    assert "first run" in done.stderr
    assert "noise of pip" in done.stderr  # stdout belongs to the command


def test_second_run_is_silent_and_quick(checkout):
    checkout.run()
    done = checkout.run()
    assert (done.stdout, done.stderr) == ("ran True []\n", "")
    assert len(checkout.pip_calls()) == 1

    def quickest(run):
        spent = []
        for _ in range(5):
            start = time.perf_counter()
            run()
            spent.append(time.perf_counter() - start)
        return min(spent)  # a busy machine only adds

    bare = quickest(lambda: subprocess.run([str(BASE), "-c", "pass"], check=True))
    assert quickest(checkout.run) - 2 * bare <= 0.1  # two starts of Python, the rest is ours


def test_interrupted_first_run_starts_over(checkout):
    failed = checkout.run(PIP_FAILS="1")
    assert failed.returncode != 0
    assert "set-up failed" in failed.stderr
    assert failed.stdout == ""
    assert checkout.run().stdout == "ran True []\n"
    assert len(checkout.pip_calls()) == 2


def test_changed_project_file_installs_again(checkout):
    checkout.run()
    with (checkout.root / "pyproject.toml").open("a") as file:
        file.write("# changed\n")
    assert checkout.run().returncode == 0
    assert len(checkout.pip_calls()) == 2


def test_nothing_happens_when_dependencies_are_present(checkout):
    checkout.need("json")
    assert checkout.run().stdout == "ran False []\n"
    assert not (checkout.root / ".venv").exists()


def test_nothing_happens_when_told_so(checkout):
    assert checkout.run(TWINGRAD_NO_BOOTSTRAP="1").stdout == "ran False []\n"
    assert not (checkout.root / ".venv").exists()


def test_nothing_happens_outside_a_checkout(checkout):
    (checkout.root / "pyproject.toml").unlink()
    assert checkout.run().stdout == "ran False []\n"
    assert not (checkout.root / ".venv").exists()


def test_nothing_happens_in_a_virtual_environment(checkout, tmp_path):
    subprocess.run([str(BASE), "-m", "venv", "--without-pip", str(tmp_path / "own")], check=True)
    done = checkout.run(python=tmp_path / "own" / checkout.python.relative_to(checkout.root / ".venv"))
    assert done.stdout == "ran True []\n"
    assert not (checkout.root / ".venv").exists()


def test_exit_code_is_the_commands(checkout):
    with (checkout.root / "command.py").open("a") as file:
        file.write("sys.exit(3)\n")
    assert checkout.run().returncode == 3


def test_bootstrap_is_short_and_uses_the_standard_library_only():
    lines = Path(bootstrap.__file__).read_text().splitlines()
    imported = {line.split()[1].partition(".")[0] for line in lines if line.startswith(("import ", "from "))}
    assert imported <= sys.stdlib_module_names
    assert len(lines) <= 100
