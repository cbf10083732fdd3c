"""How many arrays a call allocates: numpy's allocator, replaced for the time by one that counts (NEP 49)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from common.compiler.compile import load_native

_SET_HANDLER = 304
"""PyDataMem_SetHandler in numpy's C API table (numpy/__multiarray_api.h)."""
_OWN = ("malloc", "calloc", "realloc", "free")
_SOURCES = {
    "malloc": """
def malloc(context, n):
    context[0] += 1
    return invoke(context[1], n)
""",
    "calloc": """
def calloc(context, n, size):
    context[0] += 1
    return invoke(context[2], n, size)
""",
    "realloc": """
def realloc(context, memory, size):
    return invoke(context[3], memory, size)
""",
    "free": """
def free(context, memory, size):
    return invoke(context[4], memory)
""",
}
"""Native source of numpy's functions, which call the C library's; the context is the count, then their addresses."""


class _Handler(ctypes.Structure):
    """PyDataMem_Handler of numpy."""

    _fields_ = [
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", ctypes.c_void_p),
        *((name, ctypes.c_void_p) for name in _OWN),
    ]


class Counter:
    """Counts of allocations.

    Attributes
    ----------
    arrays : allocations since counting began; all of them after it ended.
    """

    def __init__(self) -> None:
        self.arrays = 0


@contextmanager
def counted() -> Iterator[Counter]:
    """Count the memory that numpy allocates for arrays, in this thread.

    Examples
    --------
    >>> import numpy as np
    >>> with counted() as found:
    ...     x = np.zeros(3).copy()
    >>> found.arrays
    2
    """
    words, handler, set_handler = _counting()
    found, before = Counter(), words[0]
    old = set_handler(handler)
    try:
        yield found
    finally:
        set_handler(old)
        found.arrays = words[0] - before


@cache
def _counting() -> tuple[Any, Any, Callable[[Any], Any]]:
    """The words of the counter and of the C library's functions; the handler as numpy takes it; what sets it.

    Arrays refer to the handler as long as they live, so it is never freed.
    """
    from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

    libc, python = ctypes.CDLL(None), ctypes.pythonapi
    words = (ctypes.c_int64 * (1 + len(_OWN)))()
    for i, name in enumerate(_OWN, 1):
        words[i] = ctypes.cast(getattr(libc, name), ctypes.c_void_p).value or 0
    ours = [load_native(_SOURCES[name], f"twingrad_count_{name}") for name in _OWN]
    handler = _Handler(b"twingrad", 1, ctypes.addressof(words), *ours)
    capsule, pointer = python.PyCapsule_New, python.PyCapsule_GetPointer
    capsule.restype, capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = (ctypes.c_void_p * (_SET_HANDLER + 1)).from_address(pointer(_multiarray_umath._ARRAY_API, None))
    set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[_SET_HANDLER] or 0)
    _KEPT.extend((words, handler))
    return words, capsule(ctypes.addressof(handler), _CAPSULE, None), set_handler


_CAPSULE = b"mem_handler"  # numpy looks at this name; a capsule does not copy it
_KEPT: list[Any] = []
