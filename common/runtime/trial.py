"""A trial run of each native builtin, before any is used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from common.compiler.compile import load_native
from common.runtime import cpython_abi
from common.runtime.bound_program import GIVEN, HELD, HELD_GRAD, LEFT, MADE, ArgumentPlace, Binding
from common.runtime.dispatch_text import CELL_WORDS, CELLS
from common.runtime.program_plan import ProgramPlan
from common.runtime.run_text import BAD_ARGUMENT

Make: TypeAlias = Callable[..., Callable[..., Any]]


def is_right(symbol: str, builtin: Callable[..., Any]) -> bool:
    """Run a builtin, mostly on a kernel that writes (first buffer + ``args[0]``) to the second and returns 7."""
    x, y = np.arange(3, dtype=np.int64), np.zeros(3, dtype=np.int64)
    return TRIALS[symbol](lambda words, *keep: builtin(symbol, np.array(words, dtype=np.int64), *keep), x, y)


@cache
def _kernel() -> int:
    return load_native(_TRIAL, "twingrad_trial")


def _call(make: Make, x: np.ndarray, y: np.ndarray) -> bool:
    return bool(make([_kernel()])(x, y, 5) == 7 and y.tolist() == [5, 6, 7])


def _elementwise(make: Make, x: np.ndarray, y: np.ndarray) -> bool:
    return bool(make([1, _kernel(), 0, 0, id(x.dtype), cpython_abi.descr_word(x.dtype)], x.dtype)(x) == 7)


def _fixed(make: Make, x: np.ndarray, y: np.ndarray) -> bool:
    words = [1, _kernel(), id(x.dtype), 1, 0, 8, cpython_abi.descr_word(x.dtype), 3, 5]
    return make(words, x.dtype)(x) is None  # the status is not 0


def _find(make: Make, x: np.ndarray, y: np.ndarray) -> bool:
    cells = np.zeros(CELLS * CELL_WORDS, np.int64)
    (find, store), key = (make([cells.ctypes.data, way], cells) for way in (0, 1)), ["key"]
    if find(x, None, y, 1.0) is not None or store(key, x, None, y, 1.0) or find(x, None, y, 2.5) is not key:
        return False
    store()
    return True


def _plan(kernel: bool) -> tuple[ProgramPlan, list[int], Any]:
    """A program of one kernel or of none, addresses for its table, and what they are of."""
    plan = ProgramPlan()
    slots = [plan.add_array(np.int64, (3,)), plan.add_array(np.int64, (3,), writes=True)]
    if kernel:
        plan.add_call(_kernel(), slots, [9])
    keep = plan.start(), np.zeros(5, dtype=np.int64), np.zeros(2 + 1, dtype=np.int64)
    return plan, [array.ctypes.data for array in keep], keep


def _run(make: Make, x: np.ndarray, y: np.ndarray) -> bool:
    plan, addresses, keep = _plan(kernel=True)
    run = make(plan.pack(addresses), *keep)
    right = run(x, y) == (1 << 32) + 7 and y.tolist() == [9, 10, 11] and run(x, x) > 0
    return bool(right and _binding_is_right(make))


class _Holder:
    __slots__ = ("_grad", "payload", "_requires_grad")

    def __init__(self, payload: Any, requires_grad: bool = False) -> None:
        self.payload, self._requires_grad = payload, requires_grad
        self._grad: Any = None


def _binding_is_right(make: Make) -> bool:
    """Bind a program without a kernel, so that it ends well, and one with it, so that nothing may change."""
    owner = _Holder(np.arange(3, dtype=np.int64))
    before = owner.payload

    def step(*places: ArgumentPlace, kernel: bool = False, tensors: bool = False, given: Sequence[Any] = ()) -> Any:
        plan, addresses, keep = _plan(kernel)
        binding = Binding(places, 1, [], _Holder(None), places[1].source == MADE, tensors)
        return make(plan.pack(addresses, binding), *keep, binding)(*given)

    made, given = (
        step(ArgumentPlace(HELD, before), ArgumentPlace(MADE, None, 0)),
        step(ArgumentPlace(HELD, owner), ArgumentPlace(LEFT, owner)),
    )
    if made.shape != (3,) or given != () or type(owner._grad) is not _Holder or owner._grad._grad is not None:
        return False
    result = step(ArgumentPlace(GIVEN), ArgumentPlace(MADE, None, 0), tensors=True, given=[owner])
    if type(result) is not _Holder or result.payload.shape != (3,) or result._grad is not None:
        return False
    if (
        step(ArgumentPlace(GIVEN), ArgumentPlace(MADE, None, 0), tensors=True, given=[_Holder(before, True)])
        != BAD_ARGUMENT
    ):
        return False
    gradient = owner._grad
    if step(ArgumentPlace(HELD_GRAD, owner), ArgumentPlace(LEFT, owner)) != () or owner._grad is gradient:
        return False
    del gradient
    memory = id(owner._grad.payload)
    failed = step(ArgumentPlace(HELD, owner), ArgumentPlace(LEFT, owner), kernel=True)
    return failed == (1 << 32) + 7 and id(owner._grad.payload) == memory


def _view(make: Make, x: np.ndarray, y: np.ndarray) -> bool:
    size = x.itemsize
    part = make([cpython_abi.descr_word(x.dtype), 1, 3, size, size, 1, 1024, 2, size])(x)
    return bool(part.base is x and part.tolist() == [1, 2] and part.flags.writeable and part.flags.aligned)


def _steps(make: Make, x: np.ndarray, y: np.ndarray) -> bool:
    word = cpython_abi.descr_word(x.dtype)
    return make([1, 1, id(x.dtype), 1, 3, word, 1, 3, _kernel(), 2, 0, 1, 1, 5], x.dtype)(x) is None


def _extent(make: Make, x: np.ndarray, y: np.ndarray) -> bool:
    at, size = x.__array_interface__["data"][0], x.itemsize
    return bool(make([1, cpython_abi.descr_word(x.dtype), size])(x[1:]) == (at + size, at + 3 * size))


TRIALS: dict[str, Callable[[Make, np.ndarray, np.ndarray], bool]] = {
    "call": _call, "elementwise": _elementwise, "fixed": _fixed, "find": _find, "run": _run, "view": _view,
    "steps": _steps, "extent": _extent,
}  # fmt: skip

_TRIAL = """
def trial(status, exception, bufs, args):
    for i in range(3):
        bufs[1][i] = bufs[0][i] + args[0]
    status[0] = 7
    return 0
"""
