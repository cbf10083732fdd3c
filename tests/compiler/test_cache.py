"""The disk cache: what is stored comes back or is refused, and no failure of it stops the work."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import warnings

import pytest

from common.compiler import compile as compile_module
from common.compiler import disk_cache
from common.compiler.compile import compile_kernel, make_key
from common.core.errors import TwingradCacheWarning
from tests.compiler.kernels import run_kernel

KEY = "0001" + "ab" * 30
ENTRY = disk_cache.Entry("f", ("g", "h"), bytes(range(256)) * 10)


def source_of(name, status):
    return f"def {name}(bufs, args):\n    return {status}\n"


def forget(source):
    compile_module._addresses.pop((source, "llvm"), None)


def entries(folder):
    return sorted(file.name for file in folder.iterdir())


def test_an_entry_comes_back(fresh_cache):
    assert disk_cache.read(KEY) is None
    disk_cache.write(KEY, ENTRY)
    assert disk_cache.read(KEY) == ENTRY
    assert entries(fresh_cache) == [KEY + ".kernel"]


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "magic", "text"])
def test_a_damaged_entry_is_removed_with_a_warning(fresh_cache, damage):
    disk_cache.write(KEY, ENTRY)
    path = fresh_cache / (KEY + ".kernel")
    data = bytearray(path.read_bytes())
    if damage == "flip":
        data[-100] ^= 1
    damaged = {"cut": data[:-1], "empty": b"", "magic": b"x" + data[1:], "text": b"hello"}.get(damage, data)
    path.write_bytes(damaged)
    with pytest.warns(TwingradCacheWarning, match="damaged"):
        assert disk_cache.read(KEY) is None
    assert not path.exists()


def test_a_damaged_kernel_is_compiled_again(fresh_cache):
    source = source_of("test_damaged", 12)
    compile_kernel(source, "test_damaged")
    (path,) = fresh_cache.iterdir()
    path.write_bytes(path.read_bytes()[:-5])
    forget(source)
    with pytest.warns(TwingradCacheWarning):
        address = compile_kernel(source, "test_damaged")
    assert run_kernel(address, [], []) == 12
    assert disk_cache.read(make_key(source)) is not None


def test_there_is_one_warning_per_process(fresh_cache, monkeypatch):
    blocked = fresh_cache.parent / "file"
    blocked.write_text("not a directory")
    monkeypatch.setenv("TWINGRAD_CACHE", str(blocked / "cache"))
    with pytest.warns(TwingradCacheWarning, match="kernel cache"):
        address = compile_kernel(source_of("test_blocked", 3), "test_blocked")
    assert run_kernel(address, [], []) == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run_kernel(compile_kernel(source_of("test_blocked", 4), "test_blocked"), [], []) == 4


def test_an_unwritable_directory_is_a_warning(fresh_cache, monkeypatch):
    fresh_cache.mkdir()

    def refuse(*_, **__):
        raise PermissionError("read-only file system")

    # Permissions do not stop root, which tests in containers run as.
    monkeypatch.setattr(disk_cache.Path, "replace", refuse)
    with pytest.warns(TwingradCacheWarning, match="read-only file system"):
        address = compile_kernel(source_of("test_unwritable", 6), "test_unwritable")
    assert run_kernel(address, [], []) == 6
    assert entries(fresh_cache) == []


def test_a_home_that_cannot_be_found_is_a_warning(fresh_cache, monkeypatch):
    def no_home():
        raise RuntimeError("Could not determine home directory")

    monkeypatch.delenv("TWINGRAD_CACHE")
    monkeypatch.setattr(disk_cache, "directory", no_home)
    with pytest.warns(TwingradCacheWarning):
        assert disk_cache.read(KEY) is None


def test_directories_of_the_platforms(monkeypatch, tmp_path):
    monkeypatch.delenv("TWINGRAD_CACHE", raising=False)
    monkeypatch.setattr(disk_cache.sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert disk_cache.directory() == tmp_path / "twingrad"
    monkeypatch.setattr(disk_cache.sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert disk_cache.directory() == tmp_path / "local" / "twingrad"
    monkeypatch.setattr(disk_cache.sys, "platform", "darwin")
    assert disk_cache.directory().parts[-3:] == ("Library", "Caches", "twingrad")


def test_the_oldest_entries_go_first(fresh_cache):
    now = time.time()
    for index in range(10):
        disk_cache.write(f"{index:04x}" + "ff" * 30, ENTRY)
    for index in range(10):
        path = fresh_cache / (f"{index:04x}" + "ff" * 30 + ".kernel")
        os.utime(path, (now - 1000 + index, now - 1000 + index))
    size = path.stat().st_size
    disk_cache.prune(fresh_cache, limit=4 * size)
    assert [name[:4] for name in entries(fresh_cache)] == ["0006", "0007", "0008", "0009"]


def test_forgotten_temporaries_are_removed(fresh_cache):
    disk_cache.write(KEY, ENTRY)
    old, new = fresh_cache / "old.tmp", fresh_cache / "new.tmp"
    old.write_text("")
    new.write_text("")
    os.utime(old, (time.time() - 7200,) * 2)
    disk_cache.prune(fresh_cache)
    assert entries(fresh_cache) == sorted([KEY + ".kernel", "new.tmp"])


def test_use_is_recorded_once_a_day(fresh_cache):
    disk_cache.write(KEY, ENTRY)
    path = fresh_cache / (KEY + ".kernel")
    recent = time.time() - 3600
    os.utime(path, (recent, recent))
    disk_cache.read(KEY)
    assert path.stat().st_mtime == pytest.approx(recent, abs=1)
    os.utime(path, (recent - 90_000,) * 2)
    disk_cache.read(KEY)
    assert path.stat().st_mtime > recent


@pytest.fixture
def beside(fresh_cache, monkeypatch, tmp_path):
    """Where ready-made entries lie, in a package that is not there."""
    monkeypatch.setattr(disk_cache, "_apart", True)
    monkeypatch.setattr(disk_cache, "__file__", str(tmp_path / "package" / "disk_cache.py"))
    disk_cache.ready_made_directory.cache_clear()
    yield tmp_path / "package" / "__pycache__" / "kernels"
    monkeypatch.undo()
    disk_cache.ready_made_directory.cache_clear()


def test_what_follows_from_the_package_lies_beside_it(fresh_cache, beside, monkeypatch, tmp_path):
    own, shared = (source_of(f"test_{name}", 3) for name in ("own", "shared"))
    compile_kernel(own, "test_own")
    compile_kernel(shared, "test_shared", ready_made=True)
    assert [len(entries(folder)) for folder in (fresh_cache, beside)] == [1, 1]
    assert entries(beside) == [f"{make_key(shared)}.kernel"]
    forget(shared)
    monkeypatch.setenv("TWINGRAD_CACHE", str(tmp_path / "another"))
    compile_kernel(shared, "test_shared", ready_made=True)
    origin = compile_module.origin(shared)
    assert origin is not None
    assert origin.place == "disk"


def test_what_names_an_op_of_a_users_is_not_the_packages(fresh_cache, beside):
    compile_module.define_scalar("test_users_double", lambda x: x + x)
    source = """def test_doubled(bufs, args):
    x = buffer(bufs, 0, float32)
    x[0] = test_users_double(x[0])
    return 0
"""
    compile_kernel(source, "test_doubled", ready_made=True)
    assert entries(fresh_cache) == [f"{make_key(source)}.kernel"]
    assert not beside.exists() or entries(beside) == []


@pytest.mark.parametrize("mode", [0o777, 0o500])
def test_ready_made_entries_go_to_the_cache_where_the_other_folder_is_not_ours(fresh_cache, beside, monkeypatch, mode):
    beside.mkdir(parents=True)
    beside.chmod(mode)
    if mode == 0o500:  # root may write everywhere
        monkeypatch.setattr(disk_cache.os, "access", lambda path, how: False)
    disk_cache.write(KEY, ENTRY, ready_made=True)
    assert disk_cache.read(KEY, ready_made=True) == ENTRY
    assert entries(fresh_cache) == [KEY + ".kernel"]
    assert entries(beside) == []


EAGER = """
import dynamic
from common.compiler import disk_cache
entries = lambda: len(list(disk_cache.directory().glob("*.kernel")))
x = dynamic.tensor([[0.5, 1.5], [2.5, 3.5]])
with dynamic.no_grad():
    dynamic.rand(3), x.sum(1), x.sum(0), x @ x, x.gather(1, dynamic.tensor([[0], [1]]))
    print(entries())
x.requires_grad_()
for _ in range(4):
    (x * 3 - x.tanh() / 7).sum().backward()
print(entries() > 0)
"""


def test_kernels_of_single_ops_serve_all_programs(tmp_path):
    """Kernels that `dynamic` compiles for one op alone lie beside the package; fused ones follow from the program."""
    environment = {**os.environ, "TWINGRAD_CACHE": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, "-c", EAGER], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "True"]
