"""Kernel calls of a plan that the threads of `common.runtime.thread_pool` make: one call is one task."""

from __future__ import annotations

from functools import cache

from common.compiler.compile import load_ir
from common.runtime.thread_pool import share

# ``task(_, _, frame, [first record, words per record, statuses, task])``: make a call and keep its status.
_TASK = """
define i32 @twingrad_task(ptr %ignored_status, ptr %ignored_exception, ptr %frame, ptr %args) {
entry:
  %status = alloca i64
  %exception = alloca ptr
  %first = load ptr, ptr %args
  %words_p = getelementptr i64, ptr %args, i64 1
  %words = load i64, ptr %words_p
  %statuses_p = getelementptr i64, ptr %args, i64 2
  %statuses = load ptr, ptr %statuses_p
  %task_p = getelementptr i64, ptr %args, i64 3
  %task = load i64, ptr %task_p
  %offset = mul i64 %task, %words
  %record = getelementptr i64, ptr %first, i64 %offset
  %kernel = load ptr, ptr %record
  %count_p = getelementptr i64, ptr %record, i64 2
  %count = load i64, ptr %count_p
  %slots = getelementptr i64, ptr %record, i64 3
  %bufs = alloca i64, i64 %count
  br label %gather
gather:
  %i = phi i64 [0, %entry], [%next, %one]
  %gathered = icmp eq i64 %i, %count
  br i1 %gathered, label %call, label %one
one:
  %slot_p = getelementptr i64, ptr %slots, i64 %i
  %slot = load i64, ptr %slot_p
  %address_p = getelementptr i64, ptr %frame, i64 %slot
  %address = load i64, ptr %address_p
  %buf_p = getelementptr i64, ptr %bufs, i64 %i
  store i64 %address, ptr %buf_p
  %next = add i64 %i, 1
  br label %gather
call:
  %behind = getelementptr i64, ptr %slots, i64 %count
  %ints = getelementptr i64, ptr %behind, i64 1
  %code = call i32 %kernel(ptr %status, ptr %exception, ptr %bufs, ptr %ints)
  %raised = icmp ne i32 %code, 0
  %own = load i64, ptr %status
  %result = select i1 %raised, i64 4294967295, i64 %own
  %result_p = getelementptr i64, ptr %statuses, i64 %task
  store i64 %result, ptr %result_p
  ret i32 0
}
"""


@cache
def addresses() -> tuple[int, int]:
    """Of what shares tasks among threads, and of what runs one: the first two words that SHARE names."""
    return share(), load_ir(_TASK, "twingrad_task")
