"""Memory behind whose end, or before whose beginning, nothing may be touched.

`guard` gives every array that numpy makes from then on, so those of both engines too, pages of its own between two
inaccessible ones (an allocator after NEP 49, in machine code), and every temporary of a compiled program as well. A
read or write out of bounds ends the process there and then. What is left of the pages is filled with a pattern, which
is checked when an array is freed, and new memory is filled with another, so that what is read before it is written
shows in results. Freed memory stays inaccessible for a while.

``python -m pytest -p tests.helpers.guarded ...`` runs tests so, with ``TWINGRAD_GUARD=begin`` on the other side; not
with ``-n``. Small arrays take 16 kB each: a process may have some ten thousand of them.
"""

from __future__ import annotations

import ctypes
import faulthandler
import mmap
import os
import sys
import weakref
from functools import partial
from typing import Any

import numpy as np

from common.compiler import llvm_engine
from common.compiler.compile import load_ir
from common.compiler.image import outlive

SIDES = ("end", "begin")
PAGE = 4096
_SET_HANDLER = 304  # of numpy's C API table (numpy/__multiarray_api.h)
_LEFT, _KEPT = 0xAB, 512
_TOLD = b"guarded memory: an array was freed beside which something was written\n"

# An array's pages: one with their address and length, an inaccessible one, those of the array, an inaccessible one.
# `how` is: side (1: end), pattern of new memory, next place in the ring of freed memory, ring of addresses and lengths.
_MODULE = f"""
declare ptr @twingrad_guarded_mmap(ptr, i64, i32, i32, i32, i64)
declare i32 @twingrad_guarded_munmap(ptr, i64)
declare i32 @twingrad_guarded_mprotect(ptr, i64, i32)
declare i64 @twingrad_guarded_write(i32, ptr, i64)
declare void @twingrad_guarded_abort()
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

@told = private constant [{len(_TOLD)} x i8] c"{_TOLD.decode()[:-1]}\\0A"

define void @guarded(ptr %functions) {{
  store ptr @make, ptr %functions
  %second = getelementptr ptr, ptr %functions, i64 1
  store ptr @make_zeros, ptr %second
  %third = getelementptr ptr, ptr %functions, i64 2
  store ptr @make_other, ptr %third
  %fourth = getelementptr ptr, ptr %functions, i64 3
  store ptr @free_it, ptr %fourth
  ret void
}}

define ptr @make(ptr %how, i64 %size) {{
entry:
  %some = call i64 @llvm.umax.i64(i64 %size, i64 1)
  %up = add i64 %some, {PAGE - 1}
  %pages = and i64 %up, {-PAGE}
  %total = add i64 %pages, {3 * PAGE}
  %base = call ptr @twingrad_guarded_mmap(ptr null, i64 %total, i32 3, i32 16418, i32 -1, i64 0)
  %number = ptrtoint ptr %base to i64
  %failed = icmp eq i64 %number, -1
  br i1 %failed, label %none, label %fill
none:
  ret ptr null
fill:
  %total_p = getelementptr i64, ptr %base, i64 1
  store i64 %total, ptr %total_p
  store i64 %some, ptr %base
  %before = getelementptr i8, ptr %base, i64 {PAGE}
  %own = getelementptr i8, ptr %base, i64 {2 * PAGE}
  %behind = getelementptr i8, ptr %own, i64 %pages
  %a = call i32 @twingrad_guarded_mprotect(ptr %before, i64 {PAGE}, i32 0)
  %b = call i32 @twingrad_guarded_mprotect(ptr %behind, i64 {PAGE}, i32 0)
  call void @llvm.memset.p0.i64(ptr %own, i8 {_LEFT - 256}, i64 %pages, i1 false)
  %side = load i64, ptr %how
  %slack = sub i64 %pages, %some
  %skip = mul i64 %slack, %side
  %begin = getelementptr i8, ptr %own, i64 %skip
  %pattern_p = getelementptr i64, ptr %how, i64 1
  %pattern = load i8, ptr %pattern_p
  call void @llvm.memset.p0.i64(ptr %begin, i8 %pattern, i64 %size, i1 false)
  ret ptr %begin
}}

define ptr @make_zeros(ptr %how, i64 %count, i64 %each) {{
  %size = mul i64 %count, %each
  %begin = call ptr @make(ptr %how, i64 %size)
  %none = icmp eq ptr %begin, null
  br i1 %none, label %end, label %fill
fill:
  call void @llvm.memset.p0.i64(ptr %begin, i8 0, i64 %size, i1 false)
  br label %end
end:
  ret ptr %begin
}}

define ptr @head(ptr %begin) {{
  %number = ptrtoint ptr %begin to i64
  %page = and i64 %number, {-PAGE}
  %head = sub i64 %page, {2 * PAGE}
  %p = inttoptr i64 %head to ptr
  ret ptr %p
}}

define ptr @make_other(ptr %how, ptr %old, i64 %size) {{
  %begin = call ptr @make(ptr %how, i64 %size)
  %none = icmp eq ptr %begin, null
  %first = icmp eq ptr %old, null
  %no_copy = or i1 %none, %first
  br i1 %no_copy, label %end, label %copy
copy:
  %head = call ptr @head(ptr %old)
  %old_size = load i64, ptr %head
  %both = call i64 @llvm.umin.i64(i64 %old_size, i64 %size)
  call void @llvm.memcpy.p0.p0.i64(ptr %begin, ptr %old, i64 %both, i1 false)
  call void @free_it(ptr %how, ptr %old, i64 0)
  br label %end
end:
  ret ptr %begin
}}

define void @free_it(ptr %how, ptr %begin, i64 %ignored) {{
entry:
  %nothing = icmp eq ptr %begin, null
  br i1 %nothing, label %end, label %look
look:
  %head = call ptr @head(ptr %begin)
  %size = load i64, ptr %head
  %total_p = getelementptr i64, ptr %head, i64 1
  %total = load i64, ptr %total_p
  %own = getelementptr i8, ptr %head, i64 {2 * PAGE}
  %pages = sub i64 %total, {3 * PAGE}
  %slack = sub i64 %pages, %size
  %from_end = icmp ne ptr %own, %begin
  %behind = getelementptr i8, ptr %begin, i64 %size
  %left = select i1 %from_end, ptr %own, ptr %behind
  br label %loop
loop:
  %i = phi i64 [0, %look], [%next, %same]
  %all = icmp eq i64 %i, %slack
  br i1 %all, label %close, label %one
one:
  %p = getelementptr i8, ptr %left, i64 %i
  %byte = load i8, ptr %p
  %is = icmp eq i8 %byte, {_LEFT - 256}
  %next = add i64 %i, 1
  br i1 %is, label %same, label %wrong
same:
  br label %loop
wrong:
  %w = call i64 @twingrad_guarded_write(i32 2, ptr @told, i64 {len(_TOLD)})
  call void @twingrad_guarded_abort()
  unreachable
close:
  %again = call ptr @twingrad_guarded_mmap(ptr %head, i64 %total, i32 0, i32 16434, i32 -1, i64 0)
  %place_p = getelementptr i64, ptr %how, i64 2
  %place = load i64, ptr %place_p
  %ring = getelementptr i64, ptr %how, i64 3
  %at = mul i64 %place, 2
  %old_p = getelementptr i64, ptr %ring, i64 %at
  %length_p = getelementptr i64, ptr %old_p, i64 1
  %old = load ptr, ptr %old_p
  %length = load i64, ptr %length_p
  store ptr %head, ptr %old_p
  store i64 %total, ptr %length_p
  %after = add i64 %place, 1
  %turn = urem i64 %after, {_KEPT}
  store i64 %turn, ptr %place_p
  %first = icmp eq ptr %old, null
  br i1 %first, label %end, label %unmap
unmap:
  %u = call i32 @twingrad_guarded_munmap(ptr %old, i64 %length)
  br label %end
end:
  ret void
}}
"""


class _Handler(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", ctypes.c_void_p),
        *((name, ctypes.c_void_p) for name in ("malloc", "calloc", "realloc", "free")),
    )


_arenas: list[tuple[weakref.ref[np.ndarray], list[tuple[int, int]]]] = []


def guard(side: str, pattern: int = 0xFF) -> None:
    """Guard all arrays that this thread makes from now on, and all temporaries of compiled programs.

    Parameters
    ----------
    side : where memory ends or begins beside an inaccessible page: "end", "begin".
    pattern : the byte of which new memory consists.
    """
    faulthandler.enable()
    _guard_arrays(side, pattern)
    _guard_temporaries(side, pattern)


def _guard_arrays(side: str, pattern: int) -> None:
    process = ctypes.CDLL(None)
    for name in ("mmap", "munmap", "mprotect", "write", "abort"):
        address = ctypes.cast(getattr(process, name), ctypes.c_void_p).value or 0
        llvm_engine.define(f"twingrad_guarded_{name}", partial(int, address))
    functions = (ctypes.c_void_p * 4)()
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(load_ir(_MODULE, "guarded"))(ctypes.addressof(functions))
    how = (ctypes.c_int64 * (3 + 2 * _KEPT))(side == "end", pattern)
    handler = _Handler(b"guarded", 1, ctypes.addressof(how), *functions)
    python, of = ctypes.pythonapi, ctypes.c_char_p(b"mem_handler")
    python.PyCapsule_New.restype, python.PyCapsule_New.argtypes = ctypes.py_object, [ctypes.c_void_p] * 3
    capsule = python.PyCapsule_New(ctypes.addressof(handler), of, None)
    python.PyCapsule_GetPointer.restype = ctypes.c_void_p
    python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    api = python.PyCapsule_GetPointer(np._core._multiarray_umath._ARRAY_API, None)  # type: ignore[attr-defined]
    table = (ctypes.c_void_p * (_SET_HANDLER + 1)).from_address(api)
    ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[_SET_HANDLER] or 0)(capsule)
    for kept in (how, handler, of):  # arrays are freed until the process ends
        outlive(kept)


def _guard_temporaries(side: str, pattern: int) -> None:
    """Each temporary gets pages of its own, and so does the scratch memory of each part of a loop."""
    from static.lowering.memory import layout as layouts
    from static.running import plan, result_memory

    lay_out = layouts.lay_out
    result_memory.POOLED_BYTES = sys.maxsize  # pooled arrays begin at a multiple of 64 bytes
    holes: list[tuple[int, int]] = []
    total = 0

    def place(nbytes: int) -> int:
        nonlocal total
        pages = -(-max(nbytes, 1) // PAGE) * PAGE
        begin = total + PAGE
        total = begin + pages
        offset = begin if side == "begin" else total - nbytes
        holes.append((offset, nbytes))
        return offset

    def spread(frame: Any, layout: layouts.MemoryLayout) -> None:
        schedule = layouts.schedule_of(frame)
        of_blocks = {i for _, i in schedule.blocks}
        parts = {
            i: len(layout.shared[step]) for step, own in schedule.scratch.items() if step in layout.shared for i in own
        }
        for i, nbytes in enumerate(layout.nbytes):
            if i in parts:
                each = nbytes // parts[i]
                places = [place(each) for _ in range(parts[i])]
                layout.offsets[i] = places[0]
                if parts[i] > 1:
                    layout.nbytes[i] = (places[1] - places[0]) * parts[i]
            elif i in of_blocks:
                layout.offsets[i] = 0
            else:
                layout.offsets[i] = place(nbytes)
        for step, block in layout.blocks.items():
            call = frame.calls[step]
            block.buffers = [place(size) for size in layouts.buffer_sizes(call, layout.values)]
            for name, (region, _) in block.regions.items():
                spread(call.regions[name], region)
                block.regions[name] = region, 0

    def guarded(frame: Any, env: Any, threads: int = 1, kept_bytes: int = 0) -> layouts.MemoryLayout:
        nonlocal total
        layout = lay_out(frame, env, threads, kept_bytes)
        holes.clear()
        total = 0
        spread(frame, layout)
        layout.total = total + PAGE
        return layout

    def arena(self: Any, nbytes: int) -> np.ndarray:
        return _arena(holes.copy(), nbytes, pattern)

    vars(plan)["lay_out"] = guarded
    result_memory.ResultMemory.arena = arena  # type: ignore[method-assign]


def _arena(used: list[tuple[int, int]], nbytes: int, pattern: int) -> np.ndarray:
    """Memory of which only the pages of what is used are accessible."""
    memory = mmap.mmap(-1, -(-nbytes // PAGE) * PAGE)
    array = np.frombuffer(memory, np.uint8)
    address = array.__array_interface__["data"][0]
    protect = ctypes.CDLL(None).mprotect
    behind = 0
    for first, last in [*(_pages(*each) for each in sorted(used)), (len(array), len(array))]:
        if protect(ctypes.c_void_p(address + behind), ctypes.c_size_t(first - behind), 0):
            raise MemoryError("guarded memory: too many pages")
        array[first:last] = _LEFT
        behind = last
    for begin, size in used:
        array[begin : begin + size] = pattern
    _arenas.append((weakref.ref(array), used))
    return array


def _pages(begin: int, size: int) -> tuple[int, int]:
    return begin // PAGE * PAGE, -(-max(begin + size, begin + 1) // PAGE) * PAGE


def check() -> None:
    """Look whether something was written beside the temporaries of compiled programs."""
    for reference, used in _arenas:
        array = reference()
        if array is None:
            continue
        for begin, size in used:
            first, last = _pages(begin, size)
            assert (array[first:begin] == _LEFT).all(), "written before a temporary"
            assert (array[begin + size : last] == _LEFT).all(), "written behind a temporary"
    _arenas[:] = [each for each in _arenas if each[0]() is not None]


def pytest_configure() -> None:
    """Guard the process of a test run."""
    guard(os.environ.get("TWINGRAD_GUARD", "end"))


def pytest_runtest_teardown() -> None:
    """Look at temporaries after each test."""
    check()
