"""Kernel source: what it means, what is refused, what its key depends on."""

from __future__ import annotations

import os
import re
import threading

import numpy as np
import pytest

import dynamic  # noqa: F401  provides the functions that kernels name
from common.compiler import compile as compile_module
from common.compiler import environment_stamp as stamp_module
from common.compiler import llvm_engine, llvm_library
from common.compiler.compile import add_namespace, compile_kernel, define_scalar, llvm_text, make_key
from common.compiler.primitives import evaluate
from common.core.errors import CompileError
from common.core.op import REGISTRY
from common.kernels.arrays.sorting import searchsorted_source
from tests.compiler.kernels import ADD, run_kernel

DTYPES = [
    "bool_",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
]


@pytest.mark.parametrize("name", DTYPES)
def test_elements_of_every_dtype_are_copied_bit_by_bit(name):
    dtype = np.dtype(name.rstrip("_"))
    source = f"""def copy_{name}(bufs, args):
    x = buffer(bufs, 0, {name})
    y = buffer(bufs, 1, {name})
    for i in range(args[0]):
        y[i] = x[i]
    return 0
"""
    raw = np.random.default_rng(0).integers(0, 256, 100 * dtype.itemsize, np.uint8)
    x = (raw % 2).astype(bool) if name == "bool_" else raw.view(dtype)
    y = np.zeros(101, dtype)
    assert run_kernel(compile_kernel(source, f"copy_{name}"), [x, y], [100]) == 0
    assert np.asarray(y[:100]).tobytes() == np.asarray(x).tobytes()
    assert y[100] == 0


def test_a_bool_is_stored_as_zero_or_one():
    source = """def test_less(bufs, args):
    x = buffer(bufs, 0, int64)
    y = buffer(bufs, 1, bool_)
    z = buffer(bufs, 2, bool_)
    for i in range(args[0]):
        z[i] = x[i] < 3
        y[i] = z[i]
    return 0
"""
    x, y, z = np.arange(70), np.full(70, 5, np.uint8), np.full(70, 9, np.uint8)
    assert run_kernel(compile_kernel(source, "test_less"), [x, y, z], [70]) == 0
    assert y.tolist() == z.tolist() == (x < 3).astype(int).tolist()


def test_integers_loops_and_branches():
    source = """def test_control(bufs, args):
    out = buffer(bufs, 0, int64)
    rows, columns = args[0], args[1]
    total = 0
    for r in range(rows):
        for c in range(1, columns, 2):
            if c % 3 == 0 or r == 2:
                continue
            total += r * columns + c
    k = 0
    while k < 5 and total > 0:
        k += 1
    out[0] = total
    out[1] = min(rows, columns, 100)
    out[2] = max(rows, columns)
    out[3] = (rows >> 1) + columns // 3 - (columns & 6)
    out[4] = k
    return 0
"""
    out = np.zeros(5, np.int64)
    assert run_kernel(compile_kernel(source, "test_control"), [out], [7, 11]) == 0
    total = sum(r * 11 + c for r in range(7) for c in range(1, 11, 2) if c % 3 and r != 2)
    assert out.tolist() == [total, 7, 11, 3 + 3 - (11 & 6), 5]


def test_the_source_returns_the_status():
    source = "def test_status(bufs, args):\n    return args[0] + 1\n"
    assert run_kernel(compile_kernel(source, "test_status"), [], [41]) == 42


def test_written_slots_may_be_many():
    """Beyond 8 + 8 arrays only the alias scopes keep a loop in vectors; here they must at least be right."""
    count = 40
    lines = [f"    b{i} = buffer(bufs, {i}, float64)" for i in range(count)]
    body = [f"        b{i}[i] = plus(b{i}[i], b{(i + 1) % count}[i])" for i in range(count)]
    text = ["def test_many(bufs, args):", *lines, "    for i in range(args[0]):", *body, "    return 0", ""]
    arrays = [np.random.default_rng(i).random(50) for i in range(count)]
    expected = [array.copy() for array in arrays]
    for i in range(count):
        expected[i] += expected[(i + 1) % count]
    assert run_kernel(compile_kernel("\n".join(text), "test_many"), arrays, [50]) == 0
    assert all(np.array_equal(a, b) for a, b in zip(arrays, expected, strict=True))


FRONT_ENDS = [compile_module._translated, compile_module._by_numba]


@pytest.mark.parametrize("front_end", FRONT_ENDS)
@pytest.mark.parametrize(("read", "written"), [(2, 1), (8, 8), (24, 16)])
def test_loops_are_vectorised_without_overlap_checks(front_end, read, written):
    """Beyond 16 + 8 arrays LLVM would leave the loop scalar, and below that check for overlaps first."""
    lines = [f"    b{i} = buffer(bufs, {i}, float64)" for i in range(read + written)]
    body = [f"        b{read + i}[i] = plus(b{i % read}[i], b{(3 * i + 1) % read}[i])" for i in range(written)]
    text = ["def vectors(bufs, args):", *lines, "    for i in range(args[0]):", *body, "    return 0"]
    module, left = front_end("\n".join(text), "vectors", "vectors")
    if left == llvm_engine.PIPELINE:
        llvm_engine.optimise(module)
    assert len(re.findall(r"store(?:\.v8f64\.p0\()? ?<\d+ x double>", str(module))) >= written
    assert "memcheck" not in str(module)
    assert not re.search(r"\b(fast|contract|reassoc|nnan|nsz|arcp|afn)\b", str(module))


def test_loops_over_dimensions_are_neither_unrolled_nor_vectors():
    """They are short; code for long ones would take most of the time of compiling an index."""
    text = """def dimensions(bufs, args):
    x = buffer(bufs, 0, int64)
    rows = 1
    for d in range(args[0]):
        rows *= args[1 + d]
    for i in range(rows):
        rest = i
        place = 0
        for d in range(args[0] - 1, -1, -1):
            place += rest % args[1 + d] * args[9 + d]
            rest //= args[1 + d]
        x[i] = place
    return 0"""
    module, complete = compile_module._translated(text, "dimensions", "test_dimensions")
    assert not complete
    llvm_engine.optimise(module)
    assert len(str(module).splitlines()) < 250
    assert not re.search(r"<\d+ x i64>", str(module))
    found = np.zeros(6, np.int64)
    assert run_kernel(compile_kernel(text, "dimensions"), [found], [2, 2, 3, *[0] * 6, 10, 1]) == 0
    assert found.tolist() == [0, 1, 2, 10, 11, 12]


@pytest.mark.parametrize("front_end", FRONT_ENDS)
def test_wide_asks_for_512_bits(front_end):
    module, _ = front_end("def wide_kernel(bufs, args):\n    wide()\n    return 0\n", "wide_kernel", "test_wide")
    assert '"prefer-vector-width"="512"' in str(module)


def test_address_is_the_address_of_an_element():
    source = """def test_address(bufs, args):
    x = buffer(bufs, 0, int32)
    out = buffer(bufs, 1, int64)
    out[0] = address(x, args[0])
    return 0
"""
    x, out = np.zeros(9, np.int32), np.zeros(1, np.int64)
    run_kernel(compile_kernel(source, "test_address"), [x, out], [5])
    assert out[0] == x.ctypes.data + 20


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return unknown_name(1)", "unknown_name"),
        ("return sin_of_libm(args[0])", "which nothing provides"),
        ("x = buffer(bufs, args[0], float32)\n    return 0", "cannot be compiled"),
        ("x = buffer(bufs, 0, float32)\n    x[0] = 1.5\n    return 0", "cannot be compiled"),
        ("x = buffer(bufs, 0, float32)\n    x[0] = float64(1)\n    return 0", "cannot be compiled"),
        ("x = buffer(bufs, 0, float32)\n    return plus(x[0], float64(1))", "one dtype: float32 and float64"),
        ("return [args[0]]", "cannot be compiled"),
        ("return min(1.0, 2.0)", "cannot be compiled"),
        ("args[0] = 1\n    return 0", "cannot be compiled"),
    ],
)
def test_what_is_not_a_kernel_is_refused(body, message):
    with pytest.raises(CompileError, match=message):
        compile_kernel(f"def test_refused(bufs, args):\n    {body}\n", "test_refused")


def test_a_symbol_that_nothing_provides_is_refused_before_llvm_ends_the_process():
    with pytest.raises(CompileError, match="symbol 'nowhere'"):
        llvm_engine.load(b"", "f", ["nowhere"])


@pytest.fixture
def key_of(monkeypatch):
    """`make_key` of fixed package files, hashed anew: they may be edited while the tests run."""
    monkeypatch.setattr(stamp_module, "HASHED", ())
    monkeypatch.setattr(compile_module, "stamp", lambda files: None)

    def key(text):
        compile_module._environment.cache_clear()
        return make_key(text)

    yield key
    monkeypatch.undo()
    compile_module._environment.cache_clear()


def test_the_key_follows_the_text_the_cpu_and_numba(key_of, monkeypatch):
    key = key_of(ADD)
    assert key == key_of(ADD) != key_of(ADD + " ")
    with monkeypatch.context() as patch:
        patch.setattr(llvm_engine, "cpu", lambda: ("generic", ""))
        assert key_of(ADD) != key
    with monkeypatch.context() as patch:
        patch.setattr(compile_module, "_numba_version", lambda: "0.0")
        assert key_of(ADD) != key
    assert key_of(ADD) == key


def test_the_key_follows_the_files_that_define_kernels(key_of, monkeypatch):
    key = key_of(ADD)
    monkeypatch.setattr(stamp_module, "HASHED", ("kernels",))
    assert key_of(ADD) != key


def test_the_stamp_follows_files_versions_and_the_processor(monkeypatch, tmp_path):
    first = stamp_module.stamp(stamp_module.hashed_files())
    assert first == stamp_module.stamp(stamp_module.hashed_files()) is not None
    for name, value in (
        ("HASHED", ("kernels",)),
        ("_cpu", lambda: b"another"),
        ("version_file", lambda name: tmp_path / name),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(stamp_module, name, value)
            assert stamp_module.stamp(stamp_module.hashed_files()) != first, name
    with monkeypatch.context() as patch:
        patch.setenv("NUMBA_CPU_NAME", "generic")
        assert stamp_module.stamp(stamp_module.hashed_files()) != first
    file = tmp_path / "kernel.py"
    file.write_text("x = 1")
    before = stamp_module._mark(file)
    os.utime(file, ns=(0, 0))
    assert stamp_module._mark(file) != before
    assert stamp_module.stamp(stamp_module.hashed_files()) == first


def test_files_that_decide_what_kernels_mean_are_looked_at_once(monkeypatch):
    stamp_module.hashed_files()
    with monkeypatch.context() as patch:
        patch.setattr(stamp_module, "_hashed", {})
        afresh = stamp_module.package_files()
    seen, scan = [], os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: seen.append(str(path)) or scan(path))
    assert stamp_module.package_files() == afresh
    assert seen
    assert not any(f"{os.sep}common{os.sep}{name}" in path for path in seen for name in stamp_module.HASHED)


def test_kernels_of_a_batch_throw_the_switches_of_llvm_once(monkeypatch):
    module, thrown, throw = llvm_engine.parse("define i32 @f() {\n ret i32 0\n}\n"), [], llvm_library.set_option
    monkeypatch.setattr(llvm_library, "set_option", lambda option: thrown.append(option) or throw(option))
    with llvm_engine.batch():
        for few in (True, True, False, True):
            llvm_engine.emit(module, "f", few)
    changed = len(llvm_engine._LEFT_OUT)
    assert len(thrown) == 4 * changed
    llvm_engine.emit(module, "f", few_passes=True)
    assert len(thrown) == 6 * changed
    assert set({option.partition("=")[0]: option for option in thrown}.values()) == {*llvm_engine._LEFT_OUT.values()}


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("number", [0, 0.5, 1, 2, 3])
def test_powers_that_the_text_says_are_those_of_the_definition(number, dtype):
    dtype = np.dtype(dtype)
    if dtype.kind == "i" and number == 0.5:
        return
    edges = (
        [0, 1, -1, 2, -3, 7] if dtype.kind == "i" else [0.0, -0.0, 1, -1, 1.5, np.inf, -np.inf, np.nan, 5e-324, 3e38]
    )
    x = np.concatenate([np.array(edges).astype(dtype), np.random.default_rng(0).normal(size=40).astype(dtype)])
    source = f"""def raised(bufs, args):
    x = buffer(bufs, 0, {dtype})
    y = buffer(bufs, 1, {dtype})
    for i in range(args[0]):
        y[i] = pow(x[i], {dtype}({dtype.type(number)}))
    return 0
"""
    y = np.zeros_like(x)
    assert run_kernel(compile_kernel(source, "raised"), [x, y], [x.size]) == 0
    expected = evaluate(REGISTRY["pow"].scalar, x, np.full_like(x, number))
    assert (
        np.isnan(y) & np.isnan(expected) | (y.view(f"u{dtype.itemsize}") == expected.view(f"u{dtype.itemsize}"))
    ).all()
    text = llvm_text(source, "raised")
    assert "fdiv" not in text
    assert "pow" not in text


def test_the_environment_is_kept_under_its_stamp(fresh_cache):
    compile_module._environment.cache_clear()
    first = compile_module._environment()
    (path,) = fresh_cache.iterdir()
    assert path.name == f"{stamp_module.stamp(stamp_module.hashed_files())}.kernel"
    compile_module._environment.cache_clear()
    assert compile_module._environment() == first == compile_module._hash_environment()


def test_a_scalar_from_outside_is_part_of_the_key():
    source = ADD.replace("plus", "users_op").replace("test_add", "test_users_op")
    keys, results = [], []
    for factor in (2.0, 3.0):
        define_scalar("users_op", lambda x, y, factor=factor: x * factor + y)
        compile_module._meanings.pop("users_op", None)
        keys.append(make_key(source))
        x, y, z = np.ones(3, np.float32), np.ones(3, np.float32), np.zeros(3, np.float32)
        compile_module._addresses.pop((source, "llvm"), None)
        run_kernel(compile_kernel(source, "test_users_op"), [x, y, z], [3])
        results.append(z[0])
    assert keys[0] != keys[1]
    assert results == [3.0, 4.0]
    longer = ADD.replace("plus", "users_operation")  # a name that only begins like it
    assert make_key(longer) == (define_scalar("users_op", lambda x: x), make_key(longer))[1]


def test_providers_are_asked_for_used_names_only():
    asked = []

    def provider(name):
        asked.append(name)
        return (lambda x: x) if name == "test_identity" else None

    add_namespace(provider)
    try:
        source = "def test_provider(bufs, args):\n    return test_identity(args[0])\n"
        assert run_kernel(compile_kernel(source, "test_provider"), [], [3]) == 3
    finally:
        compile_module._providers.remove(provider)
    assert set(asked) <= {"test_identity"}


def test_threads_compile_a_kernel_once(monkeypatch, fresh_cache):
    source, addresses = "def test_threads(bufs, args):\n    return 5\n", []
    compiled = []
    original = compile_module._compile
    monkeypatch.setattr(compile_module, "_compile", lambda *args: (compiled.append(args), original(*args))[1])
    threads = [
        threading.Thread(target=lambda: addresses.append(compile_kernel(source, "test_threads"))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(compiled) == 1
    assert len(set(addresses)) == 1
    assert len(addresses) == 8


def test_a_binary_search_has_no_branch_for_what_cannot_be_foretold():
    """LLVM makes branches of choices in loops, unless they say that nobody can foretell them."""
    for dtype in ("float32", "int64"):
        text = llvm_text(searchsorted_source(dtype), "searchsorted", "llvm")
        chosen = [line for line in text.splitlines() if " = select i1 " in line and " i64 " in line]
        assert chosen
        assert all("!unpredictable" in line for line in chosen)
