"""BLAS for kernels: the functions behind `scipy.linalg.cython_blas`, and the number of threads they may use.

Object code refers to them by symbols, so it can be cached on disk. The library is loaded when the first kernel needs
it; SciPy itself is imported only where that is not the OpenBLAS of SciPy's wheels.

The bits of a product depend on the number of BLAS threads, so a kernel sets it to one and restores it: 12 ns
with OpenBLAS, which all SciPy wheels but macOS' newest bring. Of kernels in several threads the first one sets
it, and the last one restores it. The setting belongs to SciPy's own library, not to numpy's; other threads
could notice it only while a kernel runs. Where no such function is found (`threads_are_held` tells), the
library's own setting stays, and the results of the two engines are the same as long as nothing changes it;
OMP_NUM_THREADS=1, or what the library documents, makes it sure.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from common.native import engine
from common.native.pool import SHARE

__all__ = [
    "HOLD", "RELEASE", "SHARE", "dot_symbol", "gemm_symbol", "one_thread", "threads_are_held", "tile_symbol",
]  # fmt: skip

HOLD, RELEASE = "twingrad_blas_hold", "twingrad_blas_release"
"""Symbols of functions without arguments or results."""

_PREFIXES = ("scipy_", "")
_SUFFIXES = ("", "64_", "_64")


def gemm_symbol(element: str) -> str:
    """Return the symbol of gemm for elements of LLVM type ``float`` or ``double``."""
    return f"twingrad_blas_{'s' if element == 'float' else 'd'}gemm"


def dot_symbol(element: str) -> str:
    """Return the symbol of BLAS' dot product."""
    return f"twingrad_blas_{'s' if element == 'float' else 'd'}dot"


def tile_symbol(element: str) -> str:
    """Return the symbol of the kernel that computes one tile of a product, see `common.kernels.gemm`."""
    return f"twingrad_{'s' if element == 'float' else 'd'}gemm_tile"


def threads_are_held() -> bool:
    """Return whether our products run on one BLAS thread whatever the rest of the process has set."""
    return _thread_functions() is not None


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold BLAS to one thread for calls from Python, as the kernels do for theirs."""
    found = _thread_functions()
    if found is None:
        yield
        return
    get = ctypes.CFUNCTYPE(ctypes.c_int)(found[0])
    put = ctypes.CFUNCTYPE(None, ctypes.c_int)(found[1])
    before = get()
    put(1)
    try:
        yield
    finally:
        put(before)


@cache
def _extension() -> str:
    """Return the file of `scipy.linalg.cython_blas`, which is linked with SciPy's BLAS; "" if it is not found."""
    found = find_spec("scipy")
    for folder in (found and found.submodule_search_locations) or ():
        for suffix in EXTENSION_SUFFIXES:
            file = Path(folder) / "linalg" / f"cython_blas{suffix}"
            if file.exists():
                return str(file)
    return ""


@cache
def _libraries() -> list[ctypes.CDLL]:
    """Return handles in which SciPy's BLAS can be found, without an import of SciPy, which takes 10 ms."""
    if not (name := _extension()):
        return []
    if sys.platform == "win32":
        import_module("scipy")  # adds folders of libraries
        return [ctypes.CDLL(str(dll)) for dll in sorted((Path(name).parents[2] / "scipy.libs").glob("*openblas*.dll"))]
    return [ctypes.CDLL(name)]  # a look-up also searches what it was linked with


def _function_address(name: str) -> int:
    """Return the address of a BLAS function: of OpenBLAS as SciPy's wheels bring it, else what SciPy calls."""
    for library in _libraries():
        if found := _find(library, f"scipy_{name}_"):
            return found
    return _capsule(name)


@cache
def _cython_blas() -> ModuleType:
    """Return scipy.linalg.cython_blas, loaded without the package around it, which takes 0.15 s to import."""
    import_module("scipy")
    name, file = "scipy.linalg.cython_blas", _extension()
    spec = spec_from_file_location(name, file) if file and name not in sys.modules else None
    if spec is None or spec.loader is None:
        return import_module(name)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _capsule(name: str) -> int:
    capsule = vars(_cython_blas())["__pyx_capi__"][name]
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return int(api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule)))


@cache
def _thread_functions() -> tuple[int, int] | None:
    """Return the addresses of OpenBLAS' ``int get(void)`` and ``void set(int)``, None for another library."""
    for library in _libraries():
        for prefix in _PREFIXES:
            for suffix in _SUFFIXES:
                get = _find(library, f"{prefix}openblas_get_num_threads{suffix}")
                put = _find(library, f"{prefix}openblas_set_num_threads{suffix}")
                if get and put:
                    return get, put
    return None


def _find(library: ctypes.CDLL, name: str) -> int:
    """Return the address of a function, 0 if the library has none of that name."""
    try:
        return ctypes.cast(library[name], ctypes.c_void_p).value or 0
    except AttributeError:
        return 0


_held = np.zeros(3, np.int64)
"""A lock, how many kernels hold BLAS, and how many threads it had before."""

_LOCK = """
@twingrad_blas_held = external global i64
declare i32 @twingrad_blas_get_threads()
declare void @twingrad_blas_set_threads(i32)

define internal void @lock() alwaysinline {
entry:
  br label %try
try:
  %exchange = cmpxchg ptr @twingrad_blas_held, i64 0, i64 1 acquire monotonic
  %has = extractvalue { i64, i1 } %exchange, 1
  br i1 %has, label %done, label %try
done:
  ret void
}
"""

_HOLD = """
define void @twingrad_blas_hold() {
entry:
  call void @lock()
  %count_p = getelementptr i64, ptr @twingrad_blas_held, i64 1
  %count = load i64, ptr %count_p
  %more = add i64 %count, 1
  store i64 %more, ptr %count_p
  %is_first = icmp eq i64 %count, 0
  br i1 %is_first, label %first, label %done
first:
  %threads = call i32 @twingrad_blas_get_threads()
  %wide = sext i32 %threads to i64
  %threads_p = getelementptr i64, ptr @twingrad_blas_held, i64 2
  store i64 %wide, ptr %threads_p
  %is_one = icmp eq i32 %threads, 1
  br i1 %is_one, label %done, label %set
set:
  call void @twingrad_blas_set_threads(i32 1)
  br label %done
done:
  store atomic i64 0, ptr @twingrad_blas_held release, align 8
  ret void
}
"""

_RELEASE = """
define void @twingrad_blas_release() {
entry:
  call void @lock()
  %count_p = getelementptr i64, ptr @twingrad_blas_held, i64 1
  %count = load i64, ptr %count_p
  %fewer = sub i64 %count, 1
  store i64 %fewer, ptr %count_p
  %threads_p = getelementptr i64, ptr @twingrad_blas_held, i64 2
  %threads = load i64, ptr %threads_p
  %is_last = icmp eq i64 %fewer, 0
  %was_more = icmp ne i64 %threads, 1
  %sets = and i1 %is_last, %was_more
  br i1 %sets, label %set, label %done
set:
  %count_32 = trunc i64 %threads to i32
  call void @twingrad_blas_set_threads(i32 %count_32)
  br label %done
done:
  store atomic i64 0, ptr @twingrad_blas_held release, align 8
  ret void
}
"""


@cache
def _counting(text: str) -> int:
    """The address of a function that counts who holds BLAS."""
    from common.native.compile import load_ir

    if _thread_functions() is None:
        return int(load_ir("define void @twingrad_blas_nothing() {\n  ret void\n}\n", "twingrad_blas_nothing"))
    return int(load_ir(_LOCK + text, "twingrad_blas_hold" if text is _HOLD else "twingrad_blas_release"))


def _thread_function(which: int) -> int:
    found = _thread_functions()
    assert found is not None
    return found[which]


def _after_fork() -> None:
    """No other thread has come along."""
    _held[:] = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

_definitions: dict[str, Callable[[], Any]] = {
    gemm_symbol("float"): partial(_function_address, "sgemm"),
    gemm_symbol("double"): partial(_function_address, "dgemm"),
    dot_symbol("float"): partial(_function_address, "sdot"),
    dot_symbol("double"): partial(_function_address, "ddot"),
    HOLD: partial(_counting, _HOLD),
    RELEASE: partial(_counting, _RELEASE),
    "twingrad_blas_get_threads": partial(_thread_function, 0),
    "twingrad_blas_set_threads": partial(_thread_function, 1),
    "twingrad_blas_held": lambda: _held.ctypes.data,
}
for _symbol, _address in _definitions.items():
    engine.define(_symbol, _address)
