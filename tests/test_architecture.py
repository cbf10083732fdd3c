"""The structure that keeps the code small: who imports whom, sizes, lint, types, one record per op."""

import ast
import statistics
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import dynamic  # noqa: F401  registers the ops
from common.core.op import REGISTRY
from tests.helpers.parsed import nodes, tree

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("common", "dynamic", "static", "benchmarks", "tests")
TOP_LEVEL = {"pyproject.toml", "README.md", "LICENSE", "docs", *PACKAGES}
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
TEXTS = {path: path.read_text(encoding="utf-8") for path in SOURCES}
ENGINES = [path for path in SOURCES if path.relative_to(ROOT).parts[0] in ("dynamic", "static")]


def tool(*command: str) -> None:
    done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"


def test_imports_follow_the_layers():
    # "not even lazily": import-linter reads imports inside functions too
    tool("-c", "import sys, importlinter.cli as cli; sys.exit(cli.lint_imports(no_cache=True, no_logo=True))")


def test_no_module_reaches_itself():
    """Circles of imports, those inside functions and for types only included."""
    import grimp
    import networkx as nx

    imports = grimp.build_graph("common", "dynamic", "static", "benchmarks", cache_dir=None)
    arrows = [(m, to) for m in imports.modules for to in imports.find_modules_directly_imported_by(m)]
    graph = nx.DiGraph(arrows)
    assert [sorted(circle) for circle in nx.strongly_connected_components(graph) if len(circle) > 1] == []


def test_the_page_shows_the_rooms_in_their_order():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = {
        c["containers"][0]: c["layers"] for c in project["tool"]["importlinter"]["contracts"] if "containers" in c
    }
    assert contracts.keys() == {"common", "static"}
    for package, layers in contracts.items():
        rooms = ", ".join(layer.replace(" | ", " and ") for layer in reversed(layers))
        assert f"| `{package}` | {rooms} |" in page
        folders = {path.parent.name for path in (ROOT / package).glob("*/__init__.py")}
        assert {room for layer in layers for room in layer.split(" | ")} <= folders


#: Folders of tests that are about all rooms, and what tests share.
OF_ALL = {"attacks", "helpers", "mechanics", "oracle", "parity"}
#: Rooms without a folder of tests: distributions have judges (`oracle`), names have other tests (`test_surface.py`).
ELSEWHERE = {"common": {"distributions"}, "static": {"api"}}


def test_the_tests_of_a_room_lie_in_the_folder_of_its_name():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    rooms = {
        c["containers"][0]: {room for layer in c["layers"] for room in layer.split(" | ")}
        for c in project["tool"]["importlinter"]["contracts"]
        if "containers" in c
    }
    found = {
        package: {path.parent.name for path in folder.glob("*/__init__.py")}
        for package, folder in (("common", ROOT / "tests"), ("static", ROOT / "tests" / "static"))
    }
    assert found["common"] - OF_ALL - {"benchmarks", "dynamic", "static"} == rooms["common"] - ELSEWHERE["common"]
    assert found["static"] == rooms["static"] - ELSEWHERE["static"]


def test_lint():
    tool("-m", "ruff", "check", "--no-cache", ".")


@pytest.mark.long
def test_types():
    tool("-m", "mypy")


def test_top_level_is_fixed():
    found = {path.name for path in ROOT.iterdir() if not path.name.startswith(".")}
    assert found - {"build", "dist", "__pycache__"} <= TOP_LEVEL


def test_files_are_small():
    lengths = {path: len(text.splitlines()) for path, text in TEXTS.items()}
    assert [f"{path.relative_to(ROOT)}: {n}" for path, n in lengths.items() if n > 400] == []
    assert statistics.median(n for n in lengths.values() if n > 1) <= 120


# Rooms that hold one subject at several levels: its kernels, its ops, its draws, its modules.
LEVELS = {("common", "kernels"), ("common", "ops"), ("common", "random"), ("common", "nn")}

PRODUCT = ("common", "dynamic", "static")

# Classes of one name, with the reason.
SHARED_NAMES = {
    "Graph": "what a session runs and what the compiler runs: users of both call it so",
    "Node": "of the tape and of a graph: users of both call it so",
    "SummaryWriter": "each engine has its own",
    "Variable": "PyTorch's, and TensorFlow's",
}


def test_a_file_name_names_one_subject():
    """Engines publish rooms of `common` under the same name; elsewhere a name that occurs twice is a subject's."""
    places: dict[str, list[tuple[str, ...]]] = {}
    for path in SOURCES:
        package, *folders, name = path.relative_to(ROOT).parts
        if package in PRODUCT and name != "__init__.py":
            places.setdefault(name, []).append((package, *folders[:1]))
    for name, rooms in places.items():
        engines = {room[0] for room in rooms} & {"dynamic", "static"}
        others = [room for room in rooms if room[0] not in engines] if len(engines) == 2 else rooms
        assert len(others) < 2 or (set(others) <= LEVELS and len(set(others)) == len(others)), (name, rooms)


def test_class_names_are_unique():
    found: dict[str, int] = {}
    for path in SOURCES:
        if path.relative_to(ROOT).parts[0] in PRODUCT:
            for node in nodes(path):
                if isinstance(node, ast.ClassDef):
                    found[node.name] = found.get(node.name, 0) + 1
    assert {name for name, count in found.items() if count > 1} == set(SHARED_NAMES)


def test_common_init_holds_nothing():
    assert [type(node).__name__ for node in tree(ROOT / "common" / "__init__.py").body] == ["Expr"]  # its docstring


@pytest.mark.parametrize("package", PACKAGES[:4])
def test_packages_are_typed(package):
    assert (ROOT / package / "py.typed").is_file()


@pytest.mark.parametrize("engine", ["dynamic", "static"])
def test_an_engine_loads_only_what_it_needs(engine):
    # in a process of its own: other tests have imported everything
    rooms = ("common.nn", "common.optim", "common.control", "common.transforms", "common.convert", "common.tools")
    heavy = {"dynamic": ("numba", "llvmlite", "networkx", "scipy", *rooms), "static": ("numba", "scipy")}[engine]
    other = {"dynamic": "static", "static": "dynamic"}[engine]
    tool("-c", f"import sys, {engine}; found = [m for m in {(*heavy, other)!r} if m in sys.modules]; "
               "sys.exit(f'imported too: {found}' if found else 0)")  # fmt: skip


# Engines that name an op know more about it than its record says. Each file has its reason, and none of them has to
# grow for a new op: what is not named takes the general path. A file that names none is not listed.
NAMED_OPS = {
    "dynamic/eager/short_reductions.py": "reductions on a short path; benchmarks/gates/test_chain.py shows the gain",
    "dynamic/eager/tensor.py": "hot operators skip the general path; benchmarks/gates/test_chain.py shows the gain",
    "dynamic/eager/views.py": "methods that skip the general path; benchmarks/gates/test_views.py shows the gain",
    "static/api/binding.py": "the public names of static.session",
    "static/session/gradients.py": "the cotangent of a sum",
    "static/export/onnx_attention.py": "what ops are in another format",
    "static/export/onnx_convolutions.py": "what ops are in another format",
    "static/export/onnx_formulas.py": "what ops are in another format",
    "static/export/onnx_ops.py": "what ops are in another format",
    "static/export/onnx_places.py": "what ops are in another format",
    "static/export/onnx_views.py": "what ops are in another format",
    "static/tools/peer_programs.py": "what other libraries call ops",
}


def ops_named_in(path: Path) -> set[str]:
    """Names of ops among the texts of a file, `__all__` apart, and among its imports of what ops are defined by."""
    lines = [line for line in tree(path).body if not ast.unparse(line).startswith("__all__")]
    parts = [node for line in lines for node in ast.walk(line)]
    texts = {node.value for node in parts if isinstance(node, ast.Constant) and type(node.value) is str}
    defining = [
        node for node in parts if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("common.ops")
    ]
    imported = {alias.name for node in defining for alias in node.names}
    return (texts | imported) & set(REGISTRY)


def test_engines_do_not_name_ops():
    named = {path.relative_to(ROOT).as_posix(): found for path in ENGINES if (found := ops_named_in(path))}
    assert {path: found for path, found in named.items() if path not in NAMED_OPS} == {}
    assert [path for path in NAMED_OPS if path not in named] == []


def root_of(x: ast.expr) -> str:
    """The name that attributes and elements are of, "" for those of what a call gives."""
    while isinstance(x, (ast.Attribute, ast.Subscript)):
        x = x.value
    return x.id if isinstance(x, ast.Name) else ""


def assigned_elsewhere(path: Path) -> list[str]:
    """Names that a file assigns to, although another module of the project defines them."""
    theirs = {
        alias.asname or alias.name
        for line in tree(path).body
        if isinstance(line, (ast.Import, ast.ImportFrom))
        for alias in line.names
        if (getattr(line, "module", None) or alias.name).partition(".")[0] in PRODUCT
    } - {node.id for node in nodes(path) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    found: list[ast.expr] = [
        node
        for node in nodes(path)
        if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, (ast.Store, ast.Del))
    ]
    found += [
        node.args[0]
        for node in nodes(path)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("setattr", "delattr")
    ]
    return [ast.unparse(x) for x in found if root_of(x) in theirs]


def test_no_module_assigns_into_another():
    """A room that gives a lower one something registers it there: `common.core.members`, lists of functions to call."""
    assert {
        path.relative_to(ROOT).as_posix(): found
        for path in SOURCES
        if path.relative_to(ROOT).parts[0] in PRODUCT and (found := assigned_elsewhere(path))
    } == {}


def test_a_new_op_is_one_record(tmp_path, monkeypatch):
    """Defined in a file of its own it runs in both engines; edited, it is not taken from the compiler's cache."""
    monkeypatch.setenv("TWINGRAD_CACHE", str(tmp_path))
    for scale in ("1.0", "2.0", "1.0"):
        tool("-m", "tests.helpers.new_op", scale)


def holding(words: list[str]) -> list[str]:
    """The files that hold some of these words, with the words."""
    return [f"{path.relative_to(ROOT)}: {word}" for path, text in TEXTS.items() for word in words if word in text]


def test_nothing_is_left_unfinished():
    assert holding(["TO" + "DO", "FIX" + "ME", "X" * 3, "HA" + "CK"]) == []  # not spelt out: this file is read as well


def test_no_test_is_skipped():
    assert holding(["mark." + "skip", "pytest." + "skip", "import" + "orskip"]) == []
