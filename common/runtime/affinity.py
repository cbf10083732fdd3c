"""Keeping the threads of the pool off the processor of the thread that they help.

Linux starts a thread that wakes up where the one that wakes it runs, or where it ran itself, if it finds no idle
processor in the time it allows itself for a search; where few processors share a cache, and one of them is busy, that
is no time at all. Then a caller and its helper take turns on one processor while others idle, for as long as both have
work: on a virtual machine with two processors, two threads took as long as one. So the helpers of a caller may run on
all processors but the one on which the caller was seen last. It is noted per thread, and costs a system call when the
caller has moved. Where the C library has no such functions, nothing is done.
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache, partial

import numpy as np

from common.compiler import image, llvm_engine

_WORDS = 16
_allowed = np.zeros(_WORDS, np.int64)
image.outlive(_allowed)
_FUNCTIONS = ("sched_getcpu", "sched_setaffinity")

_NOTHING = """
def processor():
    return -1

def forbid(thread, here):
    return 0
"""

_MOVES = f"""
allowed, sched_getcpu, sched_setaffinity = C

def processor():
    return to_int32(sched_getcpu())

# keep a thread, by the system's number, off a processor; no processor at all is refused, and leaves all of them
def forbid(thread, here):
    others = room({_WORDS})
    for i in range({_WORDS}):
        others[i] = allowed[i]
        if i == here >> 6:
            others[i] &= ~(1 << (here & 63))
    sched_setaffinity(thread, {8 * _WORDS}, others)
"""


@cache
def _address(name: str) -> int:
    """The address of a function of the C library; 0 if there is none."""
    try:
        return ctypes.cast(getattr(ctypes.CDLL(None), name), ctypes.c_void_p).value or 0
    except (AttributeError, OSError, TypeError):
        return 0


def source() -> str:
    """Native source of ``processor()``, -1 if it is not known, and of ``forbid(thread, processor)``."""
    return _MOVES if sys.platform == "linux" and all(map(_address, _FUNCTIONS)) else _NOTHING


def processors() -> int:
    """How many processors this process may use; threads may run on these from now on."""
    if not hasattr(os, "sched_getaffinity"):
        return os.cpu_count() or 1
    found = os.sched_getaffinity(0)
    mask = sum(1 << i for i in found if i < 64 * _WORDS)
    _allowed[:] = np.frombuffer(mask.to_bytes(8 * _WORDS, "little"), np.int64)
    return len(found)


llvm_engine.define("twingrad_allowed", lambda: _allowed.ctypes.data)
for _name in _FUNCTIONS:
    llvm_engine.define(f"twingrad_{_name}", partial(_address, _name))
