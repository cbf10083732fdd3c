"""A pool of threads for kernels whose work is cut into tasks that do not depend on each other.

``share(kernel, bufs, args, count, tasks)`` calls ``kernel(bufs, [args..., task])`` once for every task, in this thread
and in those of the pool, and returns when all are done. Which thread takes which task is left to chance, so a kernel
may use it only if no bit depends on that. Arithmetic inside a task is not split: `common.kernels.arrays.gemm` cuts
products into tiles by their sizes alone, and a product has the same bits for every number of threads.

The threads are Python's, but never hold the GIL: each waits in native code, on one of Python's own locks, which exist
on every platform. Before a thread goes to sleep it looks out for the next tasks for some 50 us, and so does the caller
for the end of a task that a thread still runs: a word that changes is seen in 0.3 us, a thread that sleeps begins after
5 to 20 (`python -m benchmarks.threads`). Where there are more threads than processors nobody looks out. A thread that
has been woken but not begun when the last task is taken is called off, so that nobody waits for a thread that a busy
machine does not run. One program at a time uses the pool; a call from another thread meanwhile, where the GIL is not
held, does all its tasks itself.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from common.compiler import llvm_engine
from common.compiler.compile import load_native
from common.compiler.image import outlive
from common.core.errors import ArgumentError, StateError
from common.core.locks import after_fork, make_lock
from common.core.numerics import flushes
from common.runtime import affinity
from common.runtime import pool_text as text

__all__ = ["SHARE", "define_for_threads", "get_num_threads", "late", "on_change", "set_num_threads", "share"]

SHARE = "twingrad_share"
"""Symbol of the word that holds the address of ``share``."""
LIMIT = 64
"""The largest number of threads that one call uses."""
_SPINS = 4000
"""How often a thread looks out before it sleeps; the processor pauses in between, for 10 to 40 ns."""

_memory = np.zeros(text.FIRST + text.WORDS * LIMIT, np.int64)
outlive(_memory)
_pool = _memory[-(_memory.ctypes.data // 8) % text.WORDS :]
_pool[text.THREADS] = 1
_count = 1
_started = 0
_flushing = False
"""Whether its threads flush subnormal numbers to zero: as did the thread that has started them."""
_lock = make_lock()
_listeners: list[Callable[[], None]] = []


def on_change(listener: Callable[[], None]) -> None:
    """Have a function called whenever the number of threads has changed."""
    _listeners.append(listener)


def set_num_threads(n: int) -> None:
    """Let large products and convolutions, and large loops, use `n` threads; no bit depends on it.

    The setting is one for the whole process and both engines. Of eager operations on elements, of pooling, of
    reductions of rows, of sums of channels and of rows at indices, threads share those with 65,000 elements or more.
    Other reductions, copies and writes run in the calling thread, as does a product of one tile (see
    `common.kernels.arrays.gemm.tiles`): threads begin to count there from 1024 x 1024 x 1024 on, and in batches.
    Compiled programs are compiled again, for loops that can be cut, when they first run with several threads.

    Parameters
    ----------
    n : at least 1, which is the default. At most 64 are used.

    Raises
    ------
    ArgumentError : not an int, or less than 1.
    StateError : threads were started before, in the other mode of `set_flush_denormal`.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.set_num_threads(2)
    >>> tw.get_num_threads()
    2
    >>> tw.set_num_threads(1)
    """
    global _count
    if not isinstance(n, int) or isinstance(n, bool):
        raise ArgumentError(f"set_num_threads expects an int, but got {type(n).__name__}")
    if n < 1:
        raise ArgumentError(f"set_num_threads expects a positive integer, but got {n}")
    with _lock:
        if n > 1 and _started and _flushing != flushes():
            was = "was" if _flushing else "was not"
            raise StateError(f"set_num_threads(): threads were started when set_flush_denormal {was} on and keep to it")
        _count = n
        _fill()
        _pool[text.PATIENCE] = _SPINS if n <= affinity.processors() else 0
        _start(min(n, LIMIT) - 1)
        _pool[text.THREADS] = min(n, LIMIT)
    for listener in _listeners:
        listener()


#: By symbol what `define_for_threads` has named; code without a pool needs a word of 0 for each.
late: dict[str, tuple[ctypes.c_int64, Callable[[], int]]] = {}
_used: list[str] = []


def define_for_threads(symbol: str, address_of: Callable[[], int]) -> None:
    """Name a word for object code that holds an address once there are threads, and 0 as long as there are none."""
    late[symbol] = ctypes.c_int64(0), address_of

    def word() -> int:
        _used.append(symbol)
        _fill()
        return ctypes.addressof(late[symbol][0])

    llvm_engine.define(symbol, word)


def _fill() -> None:
    for symbol in _used if _count > 1 or late[SHARE][0].value else ():  # all or none, also after there were threads
        word, address_of = late[symbol]
        word.value = word.value or address_of()


def get_num_threads() -> int:
    """How many threads large products and loops may use; 1 unless `set_num_threads` has been called."""
    return _count


def _start(count: int) -> None:
    """Start threads until there are `count`; those that a smaller number leaves over sleep."""
    global _started, _flushing
    _flushing = _flushing if _started else flushes()
    while _started < count:
        own = text.FIRST + text.WORDS * _started
        _pool[own + text.STATE], _pool[own + text.FORBIDDEN] = text.LOOKS_OUT, -1
        for word in (text.WAKE, text.DONE):
            lock = _python("PyThread_allocate_lock", ctypes.c_void_p)()
            _python("PyThread_acquire_lock", ctypes.c_int, ctypes.c_void_p, ctypes.c_int)(lock, 1)
            _pool[own + word] = lock
        _started += 1
        work = ctypes.CFUNCTYPE(None, ctypes.c_int64)(_work())
        thread = threading.Thread(target=work, args=(_started - 1,), daemon=True, name=f"twingrad-{_started}")
        thread.start()
        _pool[own + text.NUMBER] = thread.native_id or 0


def _python(name: str, result: Any, *arguments: Any) -> Any:
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


def _after_fork() -> None:
    """A forked process has only the thread that forked: start the others anew."""
    global _started
    _pool[text.THREADS], _pool[text.BUSY], _started = 1, 0, 0
    if _count > 1:
        set_num_threads(_count)


after_fork(_after_fork)


@cache
def _work() -> int:
    return load_native(affinity.source() + text.WORK, "twingrad_pool_work")


def _address(name: str) -> int:
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0


@cache
def share() -> int:
    """The address of ``void share(kernel, bufs, args, count, tasks)``."""
    return load_native(affinity.source() + text.SHARE, "twingrad_pool_share")


@cache
def _slice() -> int:
    return load_native(text.SLICE, "twingrad_slice_of_units")


llvm_engine.define("twingrad_pool", lambda: _pool.ctypes.data)
define_for_threads(SHARE, share)
define_for_threads("twingrad_slice", _slice)
for _name in ("PyThread_acquire_lock", "PyThread_release_lock"):
    llvm_engine.define(f"twingrad_{_name}", partial(_address, _name))
