"""The installed distribution: metadata, contents of the wheel, licences of the data."""

import ast
import hashlib
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import requires
from pathlib import Path

import numpy as np
import pytest

from common.version import __version__
from tests.helpers.parsed import nodes

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
DIGITS = "6ebb3d2fee246a4e99363262ddf8a00a3c41bee6014c373ed9d9216ba7f651b8"


def test_dependencies_are_the_four():
    found = {requirement.partition(">=")[0] for requirement in PROJECT["project"]["dependencies"]}
    assert found == {"numpy", "numba", "networkx", "scipy", "safetensors"}


def test_wheel_holds_the_four_packages():
    assert PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == [
        "common", "dynamic", "static", "benchmarks"]  # fmt: skip


def test_version_is_read_from_one_place():
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "common/version.py"
    assert __version__.count(".") == 2


def test_every_needed_module_is_in_the_test_extra():
    from tests.__main__ import NEEDS

    distributions = {
        "pytest_benchmark": "pytest-benchmark",
        "xdist": "pytest-xdist",
        "importlinter": "import-linter",
    }
    extras = PROJECT["project"]["optional-dependencies"]
    assert extras["test"][0] == "twingrad[bench,draw,lab,tensorboard,mpi,dask]"
    listed = [*PROJECT["project"]["dependencies"], *(r for extra in extras if extra != "peers" for r in extras[extra])]
    listed = {requirement.partition(">=")[0] for requirement in listed}
    assert {distributions.get(name, name) for name in NEEDS} <= listed


def test_warnings_are_errors():
    options = PROJECT["tool"]["pytest"]["ini_options"]
    assert options["filterwarnings"][0] == "error"
    assert options["xfail_strict"] is True


def test_ignored_lint_rules_are_explained():
    lines = (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    rules = [line for line in lines if re.match(r'\s*"[A-Z]+[0-9]+"', line)]
    assert [line for line in rules if "#" not in line] == []
    assert len(rules) > 10


def test_ci_runs_the_tests():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert "python3 -m tests" in script.read_text(encoding="utf-8")
    assert "set -euo pipefail" in script.read_text(encoding="utf-8")
    assert "python3 -m tests.helpers.pythons" in script.read_text(encoding="utf-8")


def test_the_smoke_test_of_ci_finds_this_python_and_passes_over_what_cannot_be_tried(monkeypatch, capsys, tmp_path):
    from tests.helpers import pythons

    here = f"3.{sys.version_info.minor}"
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    assert list(pythons.pythons()) == []
    (tmp_path / f"python{here}").symlink_to(sys.executable)
    assert [version.rpartition(".")[0] for version, _ in pythons.pythons()] == [here]
    monkeypatch.setattr(
        pythons.subprocess, "run", lambda *args, **options: subprocess.CompletedProcess(args, 1, "", "")
    )
    assert pythons.passes("3.99.0", "python3.99")
    assert "3.99.0 not tried: python3.99 -m venv" in capsys.readouterr().out


def test_digits_are_the_published_ones():
    with np.load(ROOT / "benchmarks" / "data" / "digits.npz") as file:
        images, labels = file["images"], file["labels"]
    assert images.shape == (1797, 64)
    assert images.dtype == labels.dtype == np.uint8
    assert np.bincount(labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    rows = np.concatenate([images, labels[:, None]], axis=1)
    text = "".join(",".join(map(str, row)) + "\n" for row in rows.tolist())
    # of the unpacked digits.csv.gz in scikit-learn's wheel
    assert hashlib.sha256(text.encode()).hexdigest() == DIGITS


def test_data_names_its_source_and_licence():
    text = (ROOT / "benchmarks" / "data" / "README.md").read_text(encoding="utf-8")
    assert all(part in text for part in ("CC BY 4.0", "UCI Machine Learning Repository", "BSD"))


@pytest.mark.parametrize("foreign", ["common/__init__.py", "common.py"])
@pytest.mark.parametrize("engine", ["dynamic", "static"])
def test_a_foreign_common_is_named(engine, foreign, tmp_path):
    """The names are generic: if somebody else's `common` comes first, the error says which one, and does not run it."""
    (tmp_path / foreign).parent.mkdir(exist_ok=True)
    (tmp_path / foreign).write_text("raise SystemExit('this is not to be imported')")
    code = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(ROOT)!r}]; import {engine}"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: ")
    assert str(tmp_path / foreign) in last


@pytest.mark.parametrize(("engine", "most"), [("dynamic", 236), ("static", 395)])
def test_imports_load_little(engine, most):
    code = (
        f"import sys, numpy; before = {{*sys.modules}}; import {engine}\n"
        "print(*(name for name in {*sys.modules} - before if sys.modules[name].__spec__))"  # others have no file
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    others = {name.partition(".")[0] for name in loaded} - {"common", engine}
    assert others <= sys.stdlib_module_names  # no compiler, no SciPy, no pictures
    # how long: benchmarks/gates/test_start.py
    assert sum(name.startswith(("common", engine)) for name in loaded) <= most


def test_installed_distribution_if_any_declares_the_same():
    try:
        declared = requires("twingrad") or []
    except ModuleNotFoundError:  # a checkout run by an interpreter that has the dependencies
        return
    assert {r.partition(">=")[0] for r in declared if "extra" not in r} == {
        "numpy",
        "numba",
        "networkx",
        "safetensors",
        "scipy",
    }


def test_engines_import_what_is_declared():
    """The tests install more than a user does, so what only they install must not be needed by the engines."""
    declared = {requirement.partition(">=")[0] for requirement in PROJECT["project"]["dependencies"]}
    declared |= {"llvmlite"}  # numba's
    files = "common/tools/files"
    optional = {"tensorboard": (f"{files}/tensorboard.py", f"{files}/event_"), "google": f"{files}/event_tables.py",
                "matplotlib": f"{files}/event_images.py", "onnx": "static/export/onnx_model.py",
                "mpi4py": "common/parallel/ranks.py"}  # fmt: skip
    for path in (path for package in ("common", "dynamic", "static") for path in (ROOT / package).rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        for node in nodes(path):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                modules = [node.module or ""]
            for module in {module.partition(".")[0] for module in modules} - {"common", "dynamic", "static"}:
                known = module in declared or module in sys.stdlib_module_names
                assert known or name.startswith(optional.get(module, "no file")), f"{name} imports {module}"
