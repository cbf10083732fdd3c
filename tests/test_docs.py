"""Documentation is true: examples run, links lead somewhere, public names say what they do."""

import doctest
import functools
import importlib
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, get_origin

import pytest

import dynamic
import static
from benchmarks import accuracy
from benchmarks.elementary import ulp_errors
from common.api import surface
from common.core import op
from common.kernels.math import elementary
from common.nn.module import Module
from tests.helpers.proofs import core, each, share

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
RUN = [page for page in PAGES if page.name != "contributing.md" and ROOT / "docs" / "zh" not in page.parents]
CORE = ("README.md", "architecture.md", "tutorial.md")
FLAGS = doctest.ELLIPSIS
CODE = re.compile(r"(`+)[^`\n]+\1")
LINK = re.compile(r"\]\((?!https?:)([^)\s]+)\)")


def modules_with_examples():
    """Names of the modules of all packages whose source holds an example."""
    for package in ("common", "dynamic", "static", "benchmarks"):
        for file in sorted((ROOT / package).rglob("*.py")):
            if ">>> " in file.read_text(encoding="utf-8"):
                parts = file.relative_to(ROOT).with_suffix("").parts
                yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def anchors(page: Path) -> set[str]:
    """The anchors that a Markdown page's headings make."""
    heads = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", core(RUN, lambda p: p.name in CORE))
def test_examples_on_pages(page):
    assert doctest.testfile(str(page), module_relative=False, optionflags=FLAGS, encoding="utf-8").failed == 0


@pytest.mark.parametrize("name", core(modules_with_examples(), lambda name: share(name, 10) == 0))
def test_examples_in_docstrings(name):
    module = importlib.import_module(name)
    # an engine's `float` and `bool` are dtypes: examples of what it offers are a user's, who has Python's
    done = doctest.testmod(module, globs={"__name__": "__main__"} if module in (dynamic, static) else None,
                           optionflags=FLAGS)  # fmt: skip
    assert done.failed == 0
    assert done.attempted > 0  # found, and not only written


@each("page", PAGES)
def test_links_lead_somewhere(page):
    broken = []
    for link in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
        path, _, anchor = link.partition("#")
        target = (page.parent / path) if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_no_page_names_a_place_of_one_machine():
    assert [page.name for page in PAGES if re.search(r"/(work|home|root|tmp|opt|Users)/", page.read_text())] == []


# ------------------------------------------------------------------ a contributor's first op, pass and workload


@pytest.fixture
def copy(tmp_path):
    """The packages in a folder of their own, with the files and lines of docs/contributing.md."""
    for package in ("common", "dynamic", "static", "benchmarks"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__", "test_*"))
    page = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
    new = re.findall(r"```python\n# (\S+\.py)\n(.*?)```", page, re.DOTALL)
    for path, text in new:
        assert not (tmp_path / path).exists()
        (tmp_path / path).write_text(text, encoding="utf-8")
    edits = re.findall(r"In `(\S+\.py)`, .*?```diff\n\+(.*?)\n (.*?)\n\+(.*?)\n```", page, re.DOTALL)
    for path, added, before, line in edits:
        text = (tmp_path / path).read_text(encoding="utf-8")
        assert text.count(f"\n{before}\n") == 1, f"docs/contributing.md adds a line after {before!r} of {path}"
        first = text.index("\nfrom ", text.index("from __future__") + 1) + 1
        changed = text.replace(f"\n{before}\n", f"\n{before}\n{line}\n")
        (tmp_path / path).write_text(f"{changed[:first]}{added}\n{changed[first:]}", encoding="utf-8")
    assert (len(new), len(edits)) == (3, 1)
    return tmp_path


def test_what_contributors_are_told_works(copy):
    page = ROOT / "docs" / "contributing.md"
    environment = {**os.environ, "PYTHONPATH": str(copy), "TWINGRAD_CACHE": str(copy / "cache")}
    command = [sys.executable, "-m", "doctest", str(page)]
    done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_pages_of_a_new_op_are_written(copy):
    for folder in ("tests", "docs"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
    command, environment = [sys.executable, "-m", "tests.helpers.ops_page"], {**os.environ, "PYTHONPATH": str(copy)}
    done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for page in ("docs/ops.md", "docs/api/elementwise.md", "common/ops/_contents.py"):
        assert "squareplus" in (copy / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("tool", [["ruff", "check", "--no-cache"], ["ruff", "format", "--no-cache", "--check"]])
def test_what_contributors_are_shown_is_clean(copy, tool):
    paths = ["common/ops/math/squareplus.py", "static/passes/merge_abs.py", "benchmarks/workloads/cubic.py"]
    edited = ["static/passes/__init__.py"] if tool[1] == "check" else []  # a tool sorts the import
    command = [sys.executable, "-m", *tool, "--config", str(ROOT / "pyproject.toml"), *paths, *edited]
    command += ["--extend-ignore", "I001"] if edited else []
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


# ------------------------------------------------------------------ public names

MODULES = [n for n in surface.ENGINE_NAMES if inspect.ismodule(getattr(dynamic, n))]


@pytest.mark.parametrize("engine", [dynamic, static], ids=lambda e: e.__name__)
def test_public_names_are_documented(engine):
    public = {f"{engine.__name__}.{name}": getattr(engine, name) for name in engine.__all__}
    for name in MODULES:
        module = getattr(engine, name)
        public |= {f"{engine.__name__}.{name}.{n}": getattr(module, n) for n in module.__all__}
    told = {name: x for name, x in public.items() if get_origin(x) is None}  # an alias of types cannot be documented
    assert [name for name, x in told.items() if (callable(x) or inspect.ismodule(x)) and not inspect.getdoc(x)] == []


WRITTEN = {
    **{name: f for name, f in {**surface.FUNCTIONS, **surface.CREATION}.items() if not isinstance(f, op.Op)},
    **surface.TRANSFORMS,
}


@each("name", WRITTEN)
def test_every_parameter_of_a_function_is_explained(name):
    text = inspect.getdoc(WRITTEN[name]) or ""
    named = text.partition("Parameters\n----------\n")[2].partition("\n\n")[0]
    heads = {part.strip(" *") for line in named.splitlines() if " : " in line and line[0] != " "
             for part in line.partition(" : ")[0].split(",")}  # fmt: skip
    wanted = set(inspect.signature(WRITTEN[name]).parameters) - {"axis", "keepdims"}  # numpy's names of the same
    assert wanted <= heads, f"{name}: not explained: {sorted(wanted - heads)}"


@each("name", sorted(op.REGISTRY))
def test_ops_state_what_they_compute(name):
    record = op.REGISTRY[name]
    assert record.doc
    if record.kind == "elementwise" and any(record.rules) and name not in ("clone", "to", "where"):
        assert "d/d" in record.doc or "gradient" in record.doc, record.doc


def test_modules_document_their_parameters():
    for name in dynamic.nn.__all__:
        kind = getattr(dynamic.nn, name)
        parameters = set(inspect.signature(kind).parameters) - {"args", "kwargs"}
        if issubclass(kind, Module):
            missing = [p for p in parameters if not re.search(rf"\b{p}\b[\w, ]* : ", kind.__doc__ or "")]
            assert missing == [], f"{name}: {missing}"


# ------------------------------------------------------------------ pages that are written by commands


@functools.cache
def written() -> dict[str, Any]:
    """The texts that commands write, and the public names; from a process of its own: other tests register ops."""
    code = ("import json; from tests.helpers import api_pages, ops_page; print(json.dumps({'ops': ops_page.page(), "
            "'api': api_pages.texts(), 'names': [*{**api_pages.public(api_pages.dynamic), "
            "**api_pages.public(api_pages.static)}]}))")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_page_of_ops_is_current():
    """If not: ``python -m tests.helpers.ops_page`` writes it."""
    assert written()["ops"] == (ROOT / "docs" / "ops.md").read_text(encoding="utf-8")


def test_the_reference_is_current():
    """If not: ``python -m tests.helpers.api_pages`` writes it."""
    found = {page.name: page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "api").glob("*.md")}
    assert sorted(written()["api"]) == sorted(found)
    for name, text in written()["api"].items():
        assert text == found[name], name


def test_the_reference_has_every_public_name_once():
    told = []
    for page in (ROOT / "docs" / "api").glob("*.md"):
        text, _, constants = page.read_text(encoding="utf-8").partition("## Constants, dtypes and switches\n")
        told += re.findall("^### (.*)$", text, re.MULTILINE)
        for also in re.findall(r"\bAlso (`.*?)\.(?:\n|$)", re.sub("\n(?! *[-#\n]|$)", " ", text)):
            told += re.findall("`(.*?)`", also)
        told += re.findall("`(.*?)`", constants)
    assert len(told) > 1200
    assert sorted(told) == sorted(written()["names"])


def accuracy_rows() -> dict[tuple[str, str], float]:
    page = (ROOT / "docs" / "numerics.md").read_text(encoding="utf-8")
    table = page.partition(accuracy.MARKERS[0])[2].partition(accuracy.MARKERS[1])[0]
    found = re.findall(r"^\| ([\w()]+) \| (float\d\d) \| ([\d.]+) \|", table, re.MULTILINE)
    return {(name, dtype): float(worst) for name, dtype, worst in found}


def test_the_accuracy_table_has_all_functions():
    assert list(accuracy_rows()) == [(n, d) for n in ulp_errors.FUNCTIONS for d in ("float64", "float32")]


@pytest.mark.parametrize("name", ulp_errors.FUNCTIONS)
def test_the_accuracy_table_keeps_within_the_docstrings(name):
    stated = re.search(r"float64 ([\d.]+) ulp, float32 ([\d.]+) ulp", getattr(elementary, name).__doc__ or "")
    assert stated
    for dtype, bound in zip(("float64", "float32"), stated.groups(), strict=True):
        assert accuracy_rows()[name, dtype] <= float(bound)


def test_the_accuracy_table_can_be_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(accuracy, "POINTS", 3000)
    monkeypatch.setattr(accuracy, "CHECKED", 20)
    monkeypatch.setattr(accuracy, "SIZE", 100)
    monkeypatch.setattr("benchmarks.measure.single_core", lambda: None)
    page = tmp_path / "page.md"
    page.write_text(f"before\n{accuracy.MARKERS[0]}\nold\n{accuracy.MARKERS[1]}\nafter\n")
    for _ in range(2):
        accuracy.main(["rsqrt", "--write", str(page)])
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    counts = {part: text.count(part) for part in ("old", "| dynamic |", "| rsqrt |")}
    assert counts == {"old": 0, "| dynamic |": 1, "| rsqrt |": 2}
    assert capsys.readouterr().out.count("| rsqrt |") == 4
    page.write_text(text.replace("| static |", "| static | another |"))
    with pytest.raises(SystemExit):
        accuracy.main(["rsqrt", "--write", str(page)])
    assert "install the same libraries" in capsys.readouterr().err
    assert page.read_text() == text.replace("| static |", "| static | another |")
