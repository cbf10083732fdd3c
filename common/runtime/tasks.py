"""Kernel calls of a plan that the threads of `common.runtime.thread_pool` make: one call is one task."""

from __future__ import annotations

from functools import cache

from common.compiler.compile import load_native
from common.runtime.object_text import OBJECTS
from common.runtime.thread_pool import share

# ``task(_, _, frame, [first record, words per record, statuses, task])``: make a call and keep its status.
_TASK = """
def task(status, exception, frame, args):
    record = at(args[0], args[1] * args[3])
    bufs = room(record[2])
    slots = at(record, 3)
    choose(bufs, frame, slots, record[2])
    args[2][args[3]] = run_kernel(record[0], bufs, at(slots, record[2] + 1))
    return 0
"""


@cache
def addresses() -> tuple[int, int]:
    """Of what shares tasks among threads, and of what runs one: the first two words that SHARE names."""
    return share(), load_native(OBJECTS + _TASK, "twingrad_task")
