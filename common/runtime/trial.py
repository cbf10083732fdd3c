"""A trial run of each native builtin, before any is used."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import cache
from itertools import count
from operator import add
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from common.compiler.compile import load_native
from common.runtime import cpython_abi
from common.runtime.apply_text import NODE, RECIPE, SAVES_ALL, TENSOR
from common.runtime.bound_program import GIVEN, HELD, HELD_GRAD, LEFT, MADE, ArgumentPlace, Binding
from common.runtime.dispatch_text import CELL_WORDS, CELLS
from common.runtime.program_plan import ProgramPlan
from common.runtime.run_text import BAD_ARGUMENT
from common.runtime.tape_state import KnownLine, Tape, WriteLog, line_words

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
    run = make([1, _kernel(), 0, 0, id(x.dtype), cpython_abi.descr_word(x.dtype), 8, 8], x.dtype)
    return bool(run(x) == 7 and run(np.arange(6)[::2]) == 7)


def _fixed(make: Make, x: np.ndarray, y: np.ndarray) -> bool:
    words = [1, _kernel(), id(x.dtype), 1, 0, 12, 0, 13, 1, 0, cpython_abi.descr_word(x.dtype), 3, 5]
    return make(words, x.dtype)(x) is None  # the status is not 0


def _find(make: Make, x: np.ndarray, y: np.ndarray) -> bool:
    cells = np.zeros(CELLS * CELL_WORDS, np.int64)
    (find, store), key = (make([cells.ctypes.data, way], cells) for way in (0, 1)), ["key"]
    if find(x, x, y, 1.0) is not None or store(key, x, x, y, 1.0) or find(x, x, y, 2.5) is not key:
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
    return make([1, 1, 1, 0, id(x.dtype), 1, 3, word, 1, 3, _kernel(), 2, 0, 1, 1, 5], x.dtype)(x) is None


def _extent(make: Make, x: np.ndarray, y: np.ndarray) -> bool:
    at, size = x.__array_interface__["data"][0], x.itemsize
    return bool(make([1, cpython_abi.descr_word(x.dtype), size])(x[1:]) == (at + size, at + 3 * size))


class _Op:
    """Tensor, node and recipe of a trial of ``apply``: they have the slots of all three."""

    __slots__ = tuple(dict.fromkeys((*TENSOR, "_family", *NODE, *RECIPE)))

    def __init__(self, **slots: Any) -> None:
        for name, value in slots.items():
            setattr(self, name, value)


class _Fakes(NamedTuple):
    """A tape of fakes, a table in which `op` has a recipe for an array and an int, and two tensors."""

    op: object
    looked: list[Any]
    cells: np.ndarray
    tape: Tape
    operand: _Op
    leaf: _Op


def _fakes(x: np.ndarray) -> _Fakes:
    op, looked, due = object(), list[Any](), np.array([7])
    template = _Op(_requires_grad=False, grad_fn=None, output_nr=0)
    plan = array("q", [1, 0, 1, 0, 1, 0, SAVES_ALL]).tobytes()
    recipe = _Op(builtin=None, run=add, plan=plan, op=op, attrs={}, backward="rules", forms=((x.shape, 0), int))
    key = [id(op), id(None), 1, cpython_abi.descr_word(x.dtype), 3, id(int)]
    cells = np.zeros((CELLS, CELL_WORDS), np.int64)
    cells[:, : 2 + len(key)] = [id(recipe), len(key), *key]
    looked.append(recipe)  # the cells do not own it
    files, own, grad_mode = (
        {__file__, _fakes.__code__.co_filename},
        set[str](),
        ContextVar("twingrad_trial", default=True),
    )
    place, tell, numbers, kinds = (lambda depth: None), looked.append, count(7), (_Op, _Op, _Op)
    tape = Tape({}, {}, {}, due, grad_mode, numbers, files, own, place, tell, tell, tell, template, _Op, kinds, _Op)
    tensors = (_Op(payload=x, _requires_grad=wanted, grad_fn=None, output_nr=0) for wanted in (False, True))
    return _Fakes(op, looked, cells, tape, *tensors)


def _apply(make: Make, x: np.ndarray, y: np.ndarray) -> bool:
    op, looked, cells, tape, operand, leaf = _fakes(x)
    apply = make(tape.words(cells), cells, tape)
    if apply(op, None, x, 5) is not None or apply(op, None, operand, 2.5) is not None:
        return False
    plain, made = apply(op, None, operand, 5), apply(op, None, leaf, 5)
    node = made.grad_fn
    if plain.grad_fn is not None or plain.payload.tolist() != (x + 5).tolist() or looked[1:] != [7]:
        return False
    saved = node.saved[0] is x and node.saved[1] == x.shape and node.saved[2] is made.payload
    if not saved or node.edges != (leaf, None) or node.code is not _apply.__code__ or node.number != 7:
        return False
    show, recipe = make(tape.words(cells, ready=True), cells, tape), looked[0]
    if show(recipe, y, x) is not None or show(recipe, 5, leaf) is not None:
        return False
    result = show(recipe, y, leaf)
    return result.payload is y and result.grad_fn.edges == (leaf,) and result.grad_fn.number == 8


def _recall(make: Make, x: np.ndarray, y: np.ndarray) -> bool:
    op, _, cells, tape, operand, leaf = _fakes(x)
    lines = np.zeros(CELLS * CELL_WORDS, np.int64)
    words = (line_words(lines, way, (tuple, str), tape, cells) for way in (False, True))
    recall, store = (make(each, lines, cells, tape) for each in words)
    one, many, memory = KnownLine(lambda a: None), KnownLine(lambda *tensors: tensors), object()
    one.is_one_op(op, None, (0, -1), (5,))
    arguments = operand, 2, 0.5, (1, 2), None, True, "text", [leaf, leaf]
    if recall(memory, *arguments) is not None or store(many, memory, *arguments) or store(one, memory, leaf):
        return False
    if recall(memory, *arguments) != (operand, leaf, leaf) or recall(memory, leaf).payload.tolist() != (x + 5).tolist():
        return False
    others = operand, 2, -0.5, (1, 2), None, True, "text", [leaf, leaf]
    if recall(memory, *others) is not None or recall(memory, operand, {}) is not NotImplemented:
        return False
    store()
    return recall(memory, leaf) is None


class _Entries(dict[Any, Any]):
    __slots__ = ("count",)

    count: list[int]


def _write(make: Make, x: np.ndarray, y: np.ndarray) -> bool:
    _, _, _, tape, operand, leaf = _fakes(x)
    for tensor in (operand, leaf):
        setattr(tensor, "_family", None)  # noqa: B010  a slot that only some fakes have
    entries, own, place, module = _Entries(), np.zeros(2), (), {"newest": 0}
    entries.count = [1000]
    log = WriteLog({id(own): entries}, module, "newest", place, 1 << 64, _Entries)
    write, frame = make(log.words(tape), tape, log), sys._getframe()
    part = _Op(payload=x, _requires_grad=False, _family=(1,))
    if write(operand) is not x or any(write(z) is not None for z in (leaf, part, x)):
        return False
    if write(x, frame) is not None or write(own[1:], frame) is not None or write(own, frame) is not True:
        return False
    entry = entries[place]
    if entry[:4] != (7, 0, 1 << 64, _write.__code__) or type(entry[4]) is not int:
        return False
    if module["newest"] != 7 or entries.count != [1001] or write(leaf, frame, None) is not None:
        return False
    other = np.full(5, 7, np.int16)
    middle = other[1:4]
    setattr(operand, "payload", middle)  # noqa: B010  a slot that only some fakes have
    return write(operand, frame, None) is middle and other.tolist() == [7, 0, 0, 0, 7]


TRIALS: dict[str, Callable[[Make, np.ndarray, np.ndarray], bool]] = {
    "call": _call, "elementwise": _elementwise, "fixed": _fixed, "find": _find, "run": _run, "view": _view,
    "steps": _steps, "extent": _extent, "apply": _apply, "recall": _recall,
    "write": _write,
}  # fmt: skip

_TRIAL = """
def trial(status, exception, bufs, args):
    for i in range(3):
        bufs[1][i] = bufs[0][i] + args[0]
    status[0] = 7
    return 0
"""
