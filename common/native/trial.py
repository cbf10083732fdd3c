"""A trial run of each native builtin, before any is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from common.native import abi
from common.native.binding import HELD, HELD_GRAD, LEFT, MADE, Binding, Place, Table
from common.native.compile import load_ir
from common.native.dispatch_ir import CELL_WORDS, CELLS
from common.native.plan import ProgramPlan


def is_right(builtin: Callable[..., Any]) -> bool:
    """Run each builtin on a kernel that writes (first buffer + ``args[0]``) to the second and returns 7."""
    address = load_ir(_TRIAL, "twingrad_trial")
    x, y = np.arange(3, dtype=np.int64), np.zeros(3, dtype=np.int64)
    status = builtin("call", np.array([address], dtype=np.int64))(x, y, 5)
    words = [1, address, 0, 0, id(x.dtype), abi.descr_word(x.dtype)]
    result = builtin("elementwise", np.array(words, dtype=np.int64), x.dtype)(x)
    if status != 7 or y.tolist() != [5, 6, 7] or result != 7 or not _arrays_are_right(builtin, address, x):
        return False
    words = [1, address, id(x.dtype), 1, 0, 8, abi.descr_word(x.dtype), 3, 5]
    if builtin("fixed", np.array(words, dtype=np.int64), x.dtype)(x) is not None:  # the status is not 0
        return False
    cells = np.zeros(CELLS * CELL_WORDS, np.int64)
    find, store = (builtin("find", np.array([cells.ctypes.data, way], dtype=np.int64), cells) for way in (0, 1))
    if find(x, None, y, 1.0) is not None or store(words, x, None, y, 1.0) or find(x, None, y, 2.5) is not words:
        return False
    store()
    plan = ProgramPlan()
    slots = [plan.add_array(np.int64, (3,)), plan.add_array(np.int64, (3,), writes=True)]
    plan.add_call(address, slots, [9])
    frame, last, bufs = np.array(plan.frame), np.zeros(5, dtype=np.int64), np.zeros(2, dtype=np.int64)
    addresses = [array.ctypes.data for array in (frame, last, bufs)]
    run = builtin("run", plan.pack(addresses), frame, last, bufs)
    right = run(x, y) == (1 << 32) + 7 and y.tolist() == [9, 10, 11] and run(x, x) > 0
    return bool(right and _binding_is_right(builtin, plan, addresses, (frame, last, bufs)))


class _Holder:
    __slots__ = ("_grad", "payload")

    def __init__(self, payload: Any) -> None:
        self.payload = payload
        self._grad: Any = None


def _binding_is_right(builtin: Callable[..., Any], plan: ProgramPlan, addresses: list[int], keep: Any) -> bool:
    """Bind the program without its kernel, so that it ends well, and with it, so that nothing may change."""
    owner, kernel = _Holder(np.arange(3, dtype=np.int64)), plan.instructions.pop()
    before = owner.payload

    def step(*places: Place) -> Any:
        table = Table(Binding(places, 1, [], _Holder(None), places[1].source == MADE))
        return builtin("run", plan.pack(addresses, table), *keep, *table.keep)()

    made, given = step(Place(HELD, before), Place(MADE)), step(Place(HELD, owner), Place(LEFT, owner))
    if made.shape != (3,) or given != () or type(owner._grad) is not _Holder or owner._grad._grad is not None:
        return False
    gradient = owner._grad
    if step(Place(HELD_GRAD, owner), Place(LEFT, owner)) != () or owner._grad is gradient:
        return False
    del gradient
    memory = id(owner._grad.payload)
    plan.instructions.append(kernel)
    failed = step(Place(HELD, owner), Place(LEFT, owner))
    return failed == (1 << 32) + 7 and id(owner._grad.payload) == memory


def _arrays_are_right(builtin: Callable[..., Any], address: int, x: np.ndarray) -> bool:
    word, size = abi.descr_word(x.dtype), x.itemsize
    part = builtin("view", np.array([word, 1, 3, size, size, 1, 1024, 2, size], dtype=np.int64))(x)
    made = builtin("steps", np.array([1, 1, id(x.dtype), 1, 3, word, 1, 3, address, 2, 0, 1, 1, 5], dtype=np.int64))(x)
    low, high = builtin("extent", np.array([1, word, size], dtype=np.int64))(part)
    at = x.__array_interface__["data"][0]
    held = part.base is x and part.tolist() == [1, 2] and part.flags.writeable and part.flags.aligned
    return bool(held and made is None and (low, high) == (at + size, at + 3 * size))


_TRIAL = """
define i32 @twingrad_trial(ptr %status, ptr %exception, ptr %bufs, ptr %args) {
  %add = load i64, ptr %args
  %x = load ptr, ptr %bufs
  %y_p = getelementptr ptr, ptr %bufs, i64 1
  %y = load ptr, ptr %y_p
  %v = load <3 x i64>, ptr %x, align 8
  %a0 = insertelement <3 x i64> poison, i64 %add, i64 0
  %a1 = insertelement <3 x i64> %a0, i64 %add, i64 1
  %a2 = insertelement <3 x i64> %a1, i64 %add, i64 2
  %sum = add <3 x i64> %v, %a2
  store <3 x i64> %sum, ptr %y, align 8
  store i64 7, ptr %status
  ret i32 0
}
"""
