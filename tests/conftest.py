"""Settings of every test run: repeatable random programs, a compiler cache of the checkout's own."""

import gc
import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from tests.helpers import proofs

ROOT = Path(__file__).resolve().parent.parent

# A run of the tests leaves nothing outside the checkout, and the second run finds its kernels again.
os.environ.setdefault("TWINGRAD_CACHE", str(ROOT / ".pytest_cache" / "twingrad"))

# No deadline: the first example of a program compiles it. Derandomised in CI: a red run can be repeated.
settings.register_profile("developer", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("developer"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "developer")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--quick`: the core of every proof."""
    parser.addoption("--quick", action="store_true", help="the core of every proof: what is marked quick")


def pytest_configure(config: pytest.Config) -> None:
    """Tell the tests how much to prove, and give what they and their processes leave a folder that goes with them."""
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())  # pytest keeps its own for a look
    folder = tempfile.TemporaryDirectory(prefix="twingrad-tests-", ignore_cleanup_errors=True)
    config.add_cleanup(folder.cleanup)
    os.environ["TMPDIR"] = tempfile.tempdir = folder.name
    proofs.quick = config.getoption("quick")
    proofs.sampled = config.getoption("markexpr") == "not slow"


def pytest_collection() -> None:
    """Let the collector rest while tests are collected: nothing of it is garbage."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Keep what collecting has made out of every later pass of the collector, of which tests make many."""
    gc.enable()
    gc.collect()
    gc.freeze()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With `--quick`, import only the files that mark something as quick."""
    if config.getoption("quick") and collection_path.suffix == ".py":
        return not proofs.MARKS_QUICK.search(collection_path.read_text(encoding="utf-8"))
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With `--quick`, keep what is marked so; begin with what takes long."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)
    if config.getoption("quick"):
        rest = [item for item in items if not item.get_closest_marker("quick")]
        config.hook.pytest_deselected(items=rest)
        items[:] = [item for item in items if item.get_closest_marker("quick")]


@pytest.fixture
def fresh_cache(tmp_path, monkeypatch):
    """An empty cache directory, and a process that has not warned yet."""
    from common.compiler import compile as compile_module
    from common.compiler import disk_cache

    compile_module._environment()  # is not stored here
    monkeypatch.setenv("TWINGRAD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(disk_cache, "_warned", set())
    monkeypatch.setattr(disk_cache, "_apart", False)
    return tmp_path / "cache"


@pytest.fixture(params=["dynamic", "static", "dynamic.function", "static.function"])
def run(request):
    """Call a function of an engine and operands, there or inside its `function`; the results as plain Python."""
    import dynamic
    import static
    from common.core.tree import flatten, unflatten

    engine = {"dynamic": dynamic, "static": static}[request.param.split(".")[0]]
    inside = request.param.endswith("function")

    def call(f, *args):
        target = engine.function(lambda *args: f(engine, *args)) if inside else lambda *args: f(engine, *args)
        if engine is dynamic and not inside:
            args = [dynamic.as_tensor(x) if isinstance(x, np.ndarray) else x for x in args]
        leaves, structure = flatten(target(*args))
        return unflatten(structure, [np.asarray(x).tolist() for x in leaves])

    call.inside, call.engine = inside, engine
    return call


def pytest_itemcollected(item: pytest.Item) -> None:
    """Refuse names that differ between two runs: workers in parallel could not agree on them."""
    if " at 0x" in item.nodeid:
        raise pytest.UsageError(f"{item.nodeid}: give this test's parameters ids without addresses")
