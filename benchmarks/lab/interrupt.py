"""A press of Ctrl-C by the system, after some time: it comes while native code holds the interpreter, too."""

from __future__ import annotations

import contextlib
import ctypes
import signal
import sys
from collections.abc import Iterator

_MONOTONIC = 1  # CLOCK_MONOTONIC of <time.h>
_WORDS, _NUMBER, _NOTIFY = 16, 2, 3  # of struct sigevent: which signal, and 0 to send it


@contextlib.contextmanager
def after(seconds: float) -> Iterator[None]:
    """Send SIGINT to this process after so many seconds, unless the block has ended; does nothing but on Linux.

    A timer of POSIX is used, since `signal.setitimer` sends SIGALRM, which no native code listens to. A process that is
    forked in the block does not have it.
    """
    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    if library is None or not hasattr(library, "timer_create"):
        yield
        return
    event, timer = (ctypes.c_int * _WORDS)(), ctypes.c_void_p()
    event[_NUMBER], event[_NOTIFY] = signal.SIGINT, 0
    made = library.timer_create(_MONOTONIC, event, ctypes.byref(timer)) == 0
    try:
        if made:
            whole, part = divmod(seconds, 1.0)
            library.timer_settime(timer, 0, (ctypes.c_long * 4)(0, 0, int(whole), int(part * 1e9) + 1), None)
        yield
    finally:
        if made:
            library.timer_delete(timer)
