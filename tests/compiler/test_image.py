"""Images: code that runs without LLVM gives what LLVM's own loader gives, and whatever is not known is left to it."""

from __future__ import annotations

import ctypes
import errno
import struct
from pathlib import Path

import numpy as np
import pytest

from common.compiler import compile as compile_module
from common.compiler import disk_cache, image, llvm_engine
from common.compiler.compile import compile_kernel, define_scalar, load_ir
from common.core.errors import CompileError
from common.kernels.math import elementary
from tests.compiler.kernels import run_kernel

image_link = image.link
IMAGES = image.is_supported()  # elsewhere everything is left to LLVM

define_scalar("hyperbolic_tangent", elementary.tanh)

POLYNOMIAL = """def test_image(bufs, args):
    x = buffer(bufs, 0, float64)
    y = buffer(bufs, 1, float64)
    for i in range(args[0]):
        y[i] = hyperbolic_tangent(x[i])
    return 0
"""

COPY = """
declare ptr @memmove(ptr, ptr, i64)
declare i64 @test_image_answer(i64)

define i32 @test_image_calls(ptr %status, ptr %exception, ptr %bufs, ptr %args) {
  %from = load ptr, ptr %bufs
  %to_p = getelementptr ptr, ptr %bufs, i64 1
  %to = load ptr, ptr %to_p
  %n = load i64, ptr %args
  %copied = call ptr @memmove(ptr %to, ptr %from, i64 %n)
  %answer = call i64 @test_image_answer(i64 %n)
  store i64 %answer, ptr %status
  ret i32 0
}
"""


@pytest.fixture
def objects(monkeypatch, fresh_cache):
    """Kernels are stored as object files, as on platforms without images."""
    monkeypatch.setattr(image, "link", lambda code, symbol: None)


def code_of(folder):
    (entry,) = [disk_cache.unpack(path.stem, path.read_bytes()) for path in folder.glob("*.kernel")]
    return entry.code


def forget(source):
    compile_module._addresses.pop((source, "llvm"), None)


def compiled(source):
    forget(source)
    return compile_kernel(source, "test_image")


def test_kernels_are_stored_as_images(fresh_cache):
    compiled(POLYNOMIAL)
    assert code_of(fresh_cache).startswith(image.MAGIC) == IMAGES


def test_both_loaders_run_the_same_bits(fresh_cache, request):
    x = np.random.default_rng(0).normal(size=1001)
    results = []
    for fixture in (None, "objects"):
        if fixture:
            for path in fresh_cache.glob("*.kernel"):
                path.unlink()
            request.getfixturevalue(fixture)
        y = np.zeros_like(x)
        assert run_kernel(compiled(POLYNOMIAL), [x, y], [len(x)]) == 0
        results.append(y)
        assert code_of(fresh_cache).startswith(image.MAGIC) == (IMAGES and fixture is None)
        y = np.zeros_like(x)
        assert run_kernel(compiled(POLYNOMIAL), [x, y], [len(x)]) == 0  # from the disk
        results.append(y)
    assert len({np.asarray(y).tobytes() for y in results}) == 1
    np.testing.assert_allclose(results[0], np.tanh(x), rtol=1e-15)


def test_an_image_calls_what_it_names(fresh_cache):
    double = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(lambda n: 2 * n)
    llvm_engine.define("test_image_answer", lambda: ctypes.cast(double, ctypes.c_void_p).value or 0)
    x, y = np.arange(5), np.zeros(5, np.int64)
    assert run_kernel(load_ir(COPY, "test_image_calls"), [x, y], [40]) == 80
    assert y.tolist() == x.tolist()


def test_a_symbol_that_nothing_provides_is_refused(fresh_cache):
    with pytest.raises(CompileError, match="symbol 'test_image_nowhere'"):
        load_ir(COPY.replace("test_image_answer", "test_image_nowhere"), "test_image_calls")


def test_code_is_never_writable_and_executable():
    address, maps = compiled(POLYNOMIAL), Path("/proc/self/maps")
    lines = maps.read_text().splitlines() if maps.exists() else []
    rights = {line.split()[1] for line in lines if in_range(line, address)}
    assert rights == ({"r-xp"} if IMAGES else rights - {"rwxp"})


def in_range(line, address):
    low, high = (int(part, 16) for part in line.split()[0].split("-"))
    return low <= address < high


def test_what_is_not_known_is_left_to_llvm(fresh_cache, objects):
    compiled(POLYNOMIAL)
    code = code_of(fresh_cache)
    assert image_link(code, "nowhere") is None
    assert image_link(b"MZ" + code[2:], "f") is None
    arm = code[:18] + struct.pack("<H", 183) + code[20:]
    assert image_link(arm, "f") is None
    (path,) = fresh_cache.glob("*.kernel")
    entry = disk_cache.unpack(path.stem, path.read_bytes())
    assert (image_link(relocations_of_type(code, image._ABSOLUTE_64), entry.symbol) is not None) == IMAGES
    assert image_link(relocations_of_type(code, 2), entry.symbol) is None


def relocations_of_type(code, kind):
    """The object file with its first relocation of code turned into one of a type."""
    (start,) = struct.unpack_from("<Q", code, 40)
    (count,) = struct.unpack_from("<H", code, 60)
    out = bytearray(code)
    for i in range(count):
        section = image._SECTION.unpack_from(code, start + i * image._SECTION.size)
        if section[1] == image._RELA and section[5]:
            where, info, addend = image._RELOCATION.unpack_from(code, section[4])
            image._RELOCATION.pack_into(out, section[4], where, info >> 32 << 32 | kind, addend)
    return bytes(out)


def test_a_system_that_forbids_executable_memory_has_no_images(monkeypatch):
    def refuse(*arguments):
        return errno.EACCES

    monkeypatch.setattr(image, "_mprotect", lambda: refuse)
    image.is_supported.cache_clear()
    try:
        assert not image.is_supported()
        assert image.link(b"\x7fELF\x02\x01", "f") is None
    finally:
        monkeypatch.undo()
        image.is_supported.cache_clear()
    assert image.is_supported() == IMAGES
