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
import platform
import threading
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from common.compiler import llvm_engine
from common.compiler.compile import load_ir
from common.compiler.image import outlive
from common.core.errors import ArgumentError
from common.core.locks import after_fork, make_lock
from common.runtime import affinity

__all__ = ["SHARE", "define_for_threads", "get_num_threads", "late", "on_change", "set_num_threads", "share"]

SHARE = "twingrad_share"
"""Symbol of the word that holds the address of ``share``."""
LIMIT = 64
"""The largest number of threads that one call uses."""
_MAX_ARGS = 23
_SPINS = 4000
"""How often a thread looks out before it sleeps; the processor pauses in between, for 10 to 40 ns."""

# Words: number of threads, whether a call uses the pool, address of its job, how often threads look out; then, in a
# cache line per thread but the first, its state, a lock that wakes it, a lock with which it says that it is done, the
# number that the system has for it, and the processor that is forbidden to it.
_THREADS, _BUSY, _JOB, _PATIENCE, _FIRST = 0, 1, 2, 3, 8
_STATE, _WAKE, _DONE, _NUMBER, _FORBIDDEN, _WORDS = 0, 1, 2, 3, 4, 8
_IDLE, _LOOKS_OUT, _WOKEN, _CALLED_OFF, _RUNNING, _AWAITED = range(6)
_memory = np.zeros(_FIRST + _WORDS * LIMIT, np.int64)
outlive(_memory)
_pool = _memory[-(_memory.ctypes.data // 8) % _WORDS :]
_pool[_THREADS] = 1
_count = 1
_started = 0
_lock = make_lock()
_listeners: list[Callable[[], None]] = []


def on_change(listener: Callable[[], None]) -> None:
    """Have a function called whenever the number of threads has changed."""
    _listeners.append(listener)


def set_num_threads(n: int) -> None:
    """Let large matrix products and large loops of compiled programs use `n` threads; no bit depends on it.

    The setting is one for the whole process and both engines. Eager operations other than products run in the calling
    thread, as does a product of one tile (see `common.kernels.arrays.gemm.tiles`): threads begin to count there from
    1024 x 1024 x 1024 on, and in batches. Compiled programs are compiled again, for loops that can be cut, when they
    first run with several threads.

    Parameters
    ----------
    n : at least 1, which is the default. At most 64 are used.

    Raises
    ------
    ArgumentError : not an int, or less than 1.

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
        _count = n
        _fill()
        _pool[_PATIENCE] = _SPINS if n <= affinity.processors() else 0
        _start(min(n, LIMIT) - 1)
        _pool[_THREADS] = min(n, LIMIT)
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
    global _started
    while _started < count:
        own = _FIRST + _WORDS * _started
        _pool[own + _STATE], _pool[own + _FORBIDDEN] = _LOOKS_OUT, -1
        for word in (_WAKE, _DONE):
            lock = _python("PyThread_allocate_lock", ctypes.c_void_p)()
            _python("PyThread_acquire_lock", ctypes.c_int, ctypes.c_void_p, ctypes.c_int)(lock, 1)
            _pool[own + word] = lock
        _started += 1
        work = ctypes.CFUNCTYPE(None, ctypes.c_int64)(_work())
        thread = threading.Thread(target=work, args=(_started - 1,), daemon=True, name=f"twingrad-{_started}")
        thread.start()
        _pool[own + _NUMBER] = thread.native_id or 0


def _python(name: str, result: Any, *arguments: Any) -> Any:
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


def _after_fork() -> None:
    """A forked process has only the thread that forked: start the others anew."""
    global _started
    _pool[_THREADS], _pool[_BUSY], _started = 1, 0, 0
    if _count > 1:
        set_num_threads(_count)


after_fork(_after_fork)

_PAUSES = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "amd64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
    "arm64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
}
_PAUSE = _PAUSES.get(platform.machine().lower(), ("", ""))

# job: [kernel, bufs, args, count, tasks, next task]
_DRAIN = f"""
@twingrad_pool = external global i64
{_PAUSE[0]}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i32 @twingrad_PyThread_acquire_lock(ptr, i32)
declare void @twingrad_PyThread_release_lock(ptr)

define internal i64 @word(ptr %p, i64 %i) alwaysinline {{
  %at = getelementptr i64, ptr %p, i64 %i
  %value = load i64, ptr %at
  ret i64 %value
}}

define internal ptr @thread_word(i64 %thread, i64 %which) alwaysinline {{
  %own = mul i64 %thread, {_WORDS}
  %index = add i64 %own, %which
  %from = add i64 %index, {_FIRST}
  %at = getelementptr i64, ptr @twingrad_pool, i64 %from
  ret ptr %at
}}

define internal i1 @move(i64 %thread, i64 %old, i64 %new) alwaysinline {{
  %at = call ptr @thread_word(i64 %thread, i64 {_STATE})
  %exchange = cmpxchg ptr %at, i64 %old, i64 %new seq_cst seq_cst
  %moved = extractvalue {{ i64, i1 }} %exchange, 1
  ret i1 %moved
}}

; looks at the state of a thread until it is another one, or for some 50 us
define internal void @look_out(i64 %thread, i64 %state) {{
entry:
  %at = call ptr @thread_word(i64 %thread, i64 {_STATE})
  %patience_p = getelementptr i64, ptr @twingrad_pool, i64 {_PATIENCE}
  %patience = load atomic i64, ptr %patience_p monotonic, align 8
  br label %look
look:
  %i = phi i64 [0, %entry], [%next, %wait]
  %now = load atomic i64, ptr %at acquire, align 8
  %same = icmp eq i64 %now, %state
  %patient = icmp slt i64 %i, %patience
  %goes_on = and i1 %same, %patient
  br i1 %goes_on, label %wait, label %done
wait:
  {_PAUSE[1]}
  %next = add i64 %i, 1
  br label %look
done:
  ret void
}}

define internal void @drain(ptr %job) {{
entry:
  %status = alloca i64
  %exception = alloca ptr
  %own = alloca [{_MAX_ARGS + 1} x i64]
  %kernel_word = call i64 @word(ptr %job, i64 0)
  %kernel = inttoptr i64 %kernel_word to ptr
  %bufs_word = call i64 @word(ptr %job, i64 1)
  %bufs = inttoptr i64 %bufs_word to ptr
  %args_word = call i64 @word(ptr %job, i64 2)
  %args = inttoptr i64 %args_word to ptr
  %count = call i64 @word(ptr %job, i64 3)
  %tasks = call i64 @word(ptr %job, i64 4)
  %bytes = shl i64 %count, 3
  call void @llvm.memcpy.p0.p0.i64(ptr %own, ptr %args, i64 %bytes, i1 false)
  %last = getelementptr i64, ptr %own, i64 %count
  %next = getelementptr i64, ptr %job, i64 5
  br label %take
take:
  %task = atomicrmw add ptr %next, i64 1 seq_cst
  %is_one = icmp slt i64 %task, %tasks
  br i1 %is_one, label %run, label %done
run:
  store i64 %task, ptr %last
  %ignored = call i32 %kernel(ptr %status, ptr %exception, ptr %bufs, ptr %own)
  br label %take
done:
  ret void
}}
"""

_SHARE = f"""
define void @twingrad_pool_share(ptr %kernel, ptr %bufs, ptr %args, i64 %count, i64 %tasks) {{
entry:
  %job = alloca [6 x i64]
  store ptr %kernel, ptr %job
  %p1 = getelementptr i64, ptr %job, i64 1
  store ptr %bufs, ptr %p1
  %p2 = getelementptr i64, ptr %job, i64 2
  store ptr %args, ptr %p2
  %p3 = getelementptr i64, ptr %job, i64 3
  store i64 %count, ptr %p3
  %p4 = getelementptr i64, ptr %job, i64 4
  store i64 %tasks, ptr %p4
  %p5 = getelementptr i64, ptr %job, i64 5
  store i64 0, ptr %p5
  %threads = call i64 @word(ptr @twingrad_pool, i64 {_THREADS})
  %fewer = icmp slt i64 %tasks, %threads
  %used = select i1 %fewer, i64 %tasks, i64 %threads
  %others = sub i64 %used, 1
  %several = icmp sgt i64 %others, 0
  br i1 %several, label %claim, label %alone
claim:
  %busy_p = getelementptr i64, ptr @twingrad_pool, i64 {_BUSY}
  %exchange = cmpxchg ptr %busy_p, i64 0, i64 1 seq_cst seq_cst
  %claimed = extractvalue {{ i64, i1 }} %exchange, 1
  br i1 %claimed, label %publish, label %alone
alone:
  call void @drain(ptr %job)
  ret void
publish:
  %job_p = getelementptr i64, ptr @twingrad_pool, i64 {_JOB}
  store ptr %job, ptr %job_p
  %processor = call i64 @processor()
  br label %wake
wake:
  %i = phi i64 [0, %publish], [%i_next, %woken]
  %i_next = add i64 %i, 1
  %forbidden_p = call ptr @thread_word(i64 %i, i64 {_FORBIDDEN})
  %forbidden = load i64, ptr %forbidden_p
  %has_moved = icmp ne i64 %forbidden, %processor
  br i1 %has_moved, label %move, label %rouse
move:
  %number_p = call ptr @thread_word(i64 %i, i64 {_NUMBER})
  %number = load i64, ptr %number_p
  call void @forbid(i64 %number, i64 %processor)
  store i64 %processor, ptr %forbidden_p
  br label %rouse
rouse:
  ; called off before it noticed that it had been woken: it still will
  %again = call i1 @move(i64 %i, i64 {_CALLED_OFF}, i64 {_WOKEN})
  br i1 %again, label %woken, label %unaware
unaware:
  %sees_it = call i1 @move(i64 %i, i64 {_LOOKS_OUT}, i64 {_WOKEN})
  br i1 %sees_it, label %woken, label %sleeping
sleeping:
  %from_idle = call i1 @move(i64 %i, i64 {_IDLE}, i64 {_WOKEN})
  %wake_p = call ptr @thread_word(i64 %i, i64 {_WAKE})
  %wake_lock = load ptr, ptr %wake_p
  call void @twingrad_PyThread_release_lock(ptr %wake_lock)
  br label %woken
woken:
  %all_woken = icmp eq i64 %i_next, %others
  br i1 %all_woken, label %own, label %wake
own:
  call void @drain(ptr %job)
  br label %join
join:
  %j = phi i64 [0, %own], [%j_next, %joined]
  %j_next = add i64 %j, 1
  %is_off = call i1 @move(i64 %j, i64 {_WOKEN}, i64 {_CALLED_OFF})
  br i1 %is_off, label %joined, label %running
running:
  call void @look_out(i64 %j, i64 {_RUNNING})
  %runs_on = call i1 @move(i64 %j, i64 {_RUNNING}, i64 {_AWAITED})
  br i1 %runs_on, label %wait, label %joined
wait:
  %done_p = call ptr @thread_word(i64 %j, i64 {_DONE})
  %done_lock = load ptr, ptr %done_p
  %got = call i32 @twingrad_PyThread_acquire_lock(ptr %done_lock, i32 1)
  br label %joined
joined:
  %all_joined = icmp eq i64 %j_next, %others
  br i1 %all_joined, label %free, label %join
free:
  store atomic i64 0, ptr %busy_p seq_cst, align 8
  ret void
}}
"""

_WORK = f"""
define void @twingrad_pool_work(i64 %thread) {{
entry:
  %state = call ptr @thread_word(i64 %thread, i64 {_STATE})
  %wake_p = call ptr @thread_word(i64 %thread, i64 {_WAKE})
  %wake_lock = load ptr, ptr %wake_p
  %done_p = call ptr @thread_word(i64 %thread, i64 {_DONE})
  %done_lock = load ptr, ptr %done_p
  br label %look
look:
  call void @look_out(i64 %thread, i64 {_LOOKS_OUT})
  %sleeps = call i1 @move(i64 %thread, i64 {_LOOKS_OUT}, i64 {_IDLE})
  br i1 %sleeps, label %sleep, label %begin
sleep:
  %got = call i32 @twingrad_PyThread_acquire_lock(ptr %wake_lock, i32 1)
  br label %begin
begin:
  %runs = call i1 @move(i64 %thread, i64 {_WOKEN}, i64 {_RUNNING})
  br i1 %runs, label %run, label %off
off:
  %rests = call i1 @move(i64 %thread, i64 {_CALLED_OFF}, i64 {_LOOKS_OUT})
  br i1 %rests, label %look, label %begin
run:
  %job_p = getelementptr i64, ptr @twingrad_pool, i64 {_JOB}
  %job = load ptr, ptr %job_p
  call void @drain(ptr %job)
  %unasked = call i1 @move(i64 %thread, i64 {_RUNNING}, i64 {_LOOKS_OUT})
  br i1 %unasked, label %look, label %asked
asked:
  store atomic i64 {_LOOKS_OUT}, ptr %state seq_cst, align 8
  call void @twingrad_PyThread_release_lock(ptr %done_lock)
  br label %look
}}
"""


@cache
def _work() -> int:
    return load_ir(affinity.text() + _DRAIN + _WORK, "twingrad_pool_work")


def _address(name: str) -> int:
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0


@cache
def share() -> int:
    """The address of ``void share(kernel, bufs, args, count, tasks)``."""
    return load_ir(affinity.text() + _DRAIN + _SHARE, "twingrad_pool_share")


llvm_engine.define("twingrad_pool", lambda: _pool.ctypes.data)
define_for_threads(SHARE, share)
for _name in ("PyThread_acquire_lock", "PyThread_release_lock"):
    llvm_engine.define(f"twingrad_{_name}", partial(_address, _name))
