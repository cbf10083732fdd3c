"""The set-up of the two commands, run for real in a toy checkout with a pip that only takes notes."""

import ast
import json
import os
import shutil
import subprocess
import sys
from functools import cache
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
if "PIP_FAILS" in os.environ:
    sys.stderr.write("WARNING: Retrying\\nERROR: No matching distribution found for numba\\nnote: noise\\n")
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
    assert "noise" not in done.stderr  # nor on stdout, which belongs to the command
    assert "noise of pip" in (checkout.root / ".venv" / "twingrad-test.log").read_text()


def test_second_run_is_silent_and_loads_no_more_than_it_needs(checkout):
    checkout.run()
    done = checkout.run()
    assert (done.stdout, done.stderr) == ("ran True []\n", "")
    assert len(checkout.pip_calls()) == 1

    def loaded(start):  # clocks of busy machines say less than what a start imports
        show = start + "import sys; print(*sys.modules, file=sys.stderr)"
        (checkout.root / "command.py").write_text(show)
        return set(checkout.run(python=checkout.python).stderr.split())

    needed = "import ast, hashlib, importlib.util, os, pathlib, shutil, subprocess, sys, typing\n"
    more = loaded(COMMAND.replace("NEEDS", "('sys',)")) - loaded(needed)
    assert more == {"benchmarks", "benchmarks.bootstrap"}


def test_interrupted_first_run_starts_over(checkout):
    failed = checkout.run(PIP_FAILS="1")
    assert failed.returncode != 0
    first, last = failed.stderr.splitlines()  # one line says what was wrong and what to run
    assert "first run" in first
    assert "set-up failed: ERROR: No matching distribution found for numba" in last
    assert f"{BASE} -m command" in last
    assert "pip install -e" in last
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


def refused(done):
    """The one line with which a command ended."""
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("twingrad: ")
    return line


def test_nothing_is_installed_when_told_so(checkout):
    line = refused(checkout.run(TWINGRAD_NO_BOOTSTRAP="1"))
    assert f"lacks a_module_that_nobody_has (TWINGRAD_NO_BOOTSTRAP=1 forbids to install it); run: {BASE} -m" in line
    assert f"install -e '{checkout.root}[test]'" in line
    assert not (checkout.root / ".venv").exists()


def test_nothing_is_installed_outside_a_checkout(checkout):
    (checkout.root / "pyproject.toml").unlink()
    assert "lacks a_module_that_nobody_has; run: " in refused(checkout.run())
    assert not (checkout.root / ".venv").exists()


@pytest.mark.parametrize("has_pip", [True, False])
def test_nothing_is_installed_in_a_virtual_environment(checkout, tmp_path, has_pip):
    subprocess.run([str(BASE), "-m", "venv", "--without-pip", str(tmp_path / "own")], check=True)
    python = tmp_path / "own" / checkout.python.relative_to(checkout.root / ".venv")
    if not has_pip:
        shutil.rmtree(checkout.root / "pip")
    line = refused(checkout.run(python=python))
    assert f"the environment {tmp_path / 'own'} lacks a_module_that_nobody_has; run: " in line
    assert (f"{python} -m pip install -e '" if has_pip else f" -m pip --python {python} install -e '") in line
    assert not (checkout.root / ".venv").exists()
    checkout.need("json")
    assert checkout.run(python=python).stdout == "ran True []\n"


@pytest.mark.parametrize("foreign", ["common.py", "static.py", "static/__init__.py", "dynamic.py"])
def test_what_has_the_name_of_a_package_is_named(checkout, tmp_path, foreign):
    for name in ("common", "dynamic", "static"):
        (checkout.root / name).mkdir()
        (checkout.root / name / "__init__.py").write_text("")
    checkout.need("json")
    assert checkout.run().returncode == 0
    other = tmp_path / "somebody's"
    (other / foreign).parent.mkdir(parents=True)
    (other / foreign).write_text("raise SystemExit('this is not to be imported')")
    code = f"import sys; sys.path.insert(0, {str(other)!r}); import runpy; runpy.run_module('command')"
    done = subprocess.run([str(BASE), "-c", code], cwd=checkout.root, capture_output=True, text=True, check=False)
    assert f"{other / foreign} is in the way" in refused(done)


def test_somebody_elses_benchmarks_are_named(tmp_path):
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "__init__.py").write_text("")
    code = f"import runpy, sys; sys.path[:0] = {[str(tmp_path), str(ROOT)]}; runpy.run_module('tests')"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert str(tmp_path / "benchmarks" / "__init__.py") in refused(done)


def test_exit_code_is_the_commands(checkout):
    with (checkout.root / "command.py").open("a") as file:
        file.write("sys.exit(3)\n")
    assert checkout.run().returncode == 3


FIRST = ("benchmarks/bootstrap.py", "benchmarks/__main__.py", "tests/__main__.py")  # what an old Python reads


@pytest.mark.parametrize("name", FIRST)
def test_what_runs_first_is_understood_by_old_pythons(name):
    tree = ast.parse((ROOT / name).read_text(encoding="utf-8"), feature_version=(3, 7))  # the oldest that ast knows
    evaluated = [part for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.arg))
                 for part in (getattr(node, "returns", None), getattr(node, "annotation", None)) if part]  # fmt: skip
    assert [ast.unparse(part) for part in evaluated if isinstance(part, (ast.Subscript, ast.BinOp))] == []
    assert "annotations" not in {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
                                 for alias in node.names}  # fmt: skip


@cache
def old_pythons():
    """The oldest and the newest Python before 3.11 of those that this machine has."""
    versions = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    found = [shutil.which(f"python3.{minor}") for minor in range(6, 11)]
    found += [path for minor in range(6, 11) for path in versions.glob(f"3.{minor}.*/bin/python")]
    old = {}
    for path in filter(None, found):
        done = subprocess.run([path, "-c", "import sys; print(*sys.version_info[:2])"],
                              capture_output=True, text=True, check=False)  # fmt: skip
        version = tuple(map(int, done.stdout.split()))
        if done.returncode == 0 and version < (3, 11):
            old.setdefault(version, path)
    return {old[version] for version in [*sorted(old)[:1], *sorted(old)[-1:]]}


@pytest.mark.parametrize("command", ["benchmarks", "tests"])
def test_old_pythons_are_refused_in_one_line(command, monkeypatch):
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    for path in old_pythons():
        done = subprocess.run([path, "-m", command], cwd=ROOT, capture_output=True, text=True, check=False,
                              env=environment)  # fmt: skip
        assert "Python 3.11 or newer is needed, this is 3." in refused(done)
    monkeypatch.setattr(sys, "version_info", (3, 10, 99))
    with pytest.raises(SystemExit, match=rf"3.10.99 \(.*\); run: .* -m {command}$"):
        bootstrap.bootstrap(command, "test", ("a_module_that_nobody_has",))


def test_bootstrap_is_short_and_uses_the_standard_library_only():
    lines = Path(bootstrap.__file__).read_text().splitlines()
    imported = {line.split()[1].partition(".")[0] for line in lines if line.startswith(("import ", "from "))}
    assert imported <= sys.stdlib_module_names
    assert len(lines) <= 150
