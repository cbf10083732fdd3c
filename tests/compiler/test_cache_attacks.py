"""Attacks on the disk cache: nothing that somebody else could have put there is run."""

from __future__ import annotations

import os
import random
import warnings

import numpy as np
import pytest

import static
from common.compiler import compile as compile_module
from common.compiler import disk_cache
from common.compiler.compile import compile_kernel
from common.core.errors import TwingradCacheWarning
from tests.compiler.kernels import run_kernel


def source_of(status):
    return f"def test_attack(bufs, args):\n    return {status}\n"


def compiled(status):
    """The status of a kernel that returns `status`, in a process that has not met it."""
    compile_module._addresses.pop((source_of(status), "llvm"), None)
    return run_kernel(compile_kernel(source_of(status), "test_attack"), [], [])


def program(factor):
    return static.function(lambda x: static.tanh(x * factor) - x)(np.arange(3, dtype=np.float32))


def results(monkeypatch):
    """Results of kernels of two kinds and of programs, by a compiler that has forgotten all that it knew."""
    monkeypatch.setattr(compile_module, "_addresses", {})
    return [compiled(21), compiled(22), np.asarray(program(3.0)).tolist(), np.asarray(program(4.0)).tolist()]


@pytest.mark.parametrize("seed", range(8))
def test_valid_entries_under_each_others_names_are_not_run(fresh_cache, monkeypatch, seed):
    expected = results(monkeypatch)
    paths = sorted(fresh_cache.glob("*.kernel"))
    held = [path.read_bytes() for path in paths]
    random.Random(seed).shuffle(held)
    for path, data in zip(paths, held, strict=True):
        path.write_bytes(data)
    with pytest.warns(TwingradCacheWarning, match="damaged entry"):
        assert results(monkeypatch) == expected
    assert results(monkeypatch) == expected


@pytest.mark.parametrize("seed", range(8))
def test_cut_and_changed_entries_are_not_run(fresh_cache, monkeypatch, seed):
    expected, rng = results(monkeypatch), random.Random(seed)
    for path in fresh_cache.glob("*.kernel"):
        data = bytearray(path.read_bytes())
        place = rng.randrange(len(data))
        if seed % 2:
            data[place] ^= 1 << rng.randrange(8)
        path.write_bytes(data if seed % 2 else data[:place])
    with pytest.warns(TwingradCacheWarning, match="damaged entry"):
        assert results(monkeypatch) == expected


@pytest.mark.parametrize(
    ("mode", "who"), [(0o777, "its group and all users"), (0o770, "its group"), (0o702, "all users")]
)
def test_a_folder_that_others_may_write_to_is_not_used(fresh_cache, monkeypatch, mode, who):
    expected = results(monkeypatch)
    fresh_cache.chmod(mode)
    monkeypatch.setattr(disk_cache, "unpack", lambda *_: pytest.fail("an entry was read"))
    with pytest.warns(TwingradCacheWarning, match=rf"is not used: {who} may write to it.*chmod go-w") as told:
        assert results(monkeypatch) == expected
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = sorted(fresh_cache.iterdir())
        assert compiled(23) == 23
        assert sorted(fresh_cache.iterdir()) == before


def somebody_elses(monkeypatch, name):
    """Let the system say of a path that it is another user's."""
    found = getattr(os, name)

    def says(path, *args, **kwargs):
        status = found(path, *args, **kwargs)
        return os.stat_result([*status[:4], os.geteuid() + 1, *status[5:]])

    monkeypatch.setattr(disk_cache.os, name, says)


def test_a_folder_of_another_user_is_not_used(fresh_cache, monkeypatch):
    expected = results(monkeypatch)
    somebody_elses(monkeypatch, "stat")
    monkeypatch.setattr(disk_cache, "unpack", lambda *_: pytest.fail("an entry was read"))
    with pytest.warns(TwingradCacheWarning, match=r"belongs to user \d+, .* of your own in TWINGRAD_CACHE") as told:
        assert results(monkeypatch) == expected
    assert len(told) == 1


def test_what_is_no_file_is_not_waited_for(fresh_cache):
    assert [compiled(27), compiled(28)] == [27, 28]
    pipe, folder = sorted(fresh_cache.glob("*.kernel"))
    for path in (pipe, folder):
        path.unlink()
    os.mkfifo(pipe, 0o600)
    folder.mkdir()
    with pytest.warns(TwingradCacheWarning, match=r"damaged entry|cannot read the kernel cache"):
        assert [compiled(27), compiled(28)] == [27, 28]
    assert pipe.is_file()


@pytest.mark.parametrize("how", ["owner", "mode"])
def test_an_entry_that_somebody_else_could_write_is_made_again(fresh_cache, monkeypatch, how):
    assert compiled(24) == 24
    (path,) = fresh_cache.glob("*.kernel")
    assert path.stat().st_mode & 0o777 == 0o600
    if how == "mode":
        path.chmod(0o666)
    else:
        somebody_elses(monkeypatch, "fstat")
    with pytest.warns(TwingradCacheWarning, match="entry that is not used, because"):
        assert compiled(24) == 24
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_folder_is_made_for_its_user_alone(fresh_cache):
    before = os.umask(0)
    try:
        assert compiled(25) == 25
    finally:
        os.umask(before)
    assert fresh_cache.stat().st_mode & 0o777 == 0o700
    assert [path.stat().st_mode & 0o777 for path in fresh_cache.iterdir()] == [0o600]


def test_links_lead_to_what_is_looked_at(fresh_cache, tmp_path, monkeypatch):
    target = tmp_path / "target"
    target.mkdir(mode=0o700)
    fresh_cache.symlink_to(target)
    assert compiled(26) == 26
    (path,) = target.glob("*.kernel")
    elsewhere = tmp_path / "elsewhere"
    path.rename(elsewhere)
    elsewhere.chmod(0o666)
    path.symlink_to(elsewhere)
    with pytest.warns(TwingradCacheWarning, match="entry that is not used"):
        assert compiled(26) == 26
    assert elsewhere.exists()
    assert not path.is_symlink()
    target.chmod(0o777)
    with pytest.warns(TwingradCacheWarning, match="is not used: its group and all users may write to it"):
        assert compiled(26) == 26
    target.chmod(0o700)
    fresh_cache.unlink()
    fresh_cache.symlink_to(tmp_path / "nowhere")
    monkeypatch.setattr(disk_cache, "_warned", set())
    with pytest.warns(TwingradCacheWarning, match="cannot write to the kernel cache"):
        assert compiled(26) == 26
