"""A compiled program as data: what its arguments must be, which addresses it needs, which kernels run.

A plan is made per set of sizes from kernels that are generic in sizes; building it costs microseconds and
compiles nothing.  `common.native.calls.make_run` turns it into one native call.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from common.native.abi import ALIGNED, C_CONTIGUOUS, WRITEABLE, descr_word
from common.native.binding import GIVEN, Table
from common.native.calls_ir import BAD_ARGUMENT, OVERLAP
from common.native.tasks import addresses

ARRAY, FLOAT, INT = 0, 1, 2

END, SET, ROW, SWAP, LOAD, STORE, COPY, JUMP, JUMP_FALSE, JUMP_REACHED, JUMP_OTHER, LIMIT, SHARE = range(13)
"""Instructions that are no kernel calls, on words a, b, c of the frame and a number d:

- SET: a = b + d;  ROW: a = b + c * d;  SWAP: a and b;  LOAD: a = what b points to;  STORE: to what a points to, b;
- COPY: d bytes from b to a;
- JUMP to instruction d;  JUMP_FALSE: if the byte at a is 0;  JUMP_REACHED: if a >= b;  JUMP_OTHER: if a is not the
  number b;
- LIMIT: end with status c if a >= the number b;
- SHARE: the next a kernel calls, of b words each, do not depend on each other, and threads may make them. From word c
  on: the addresses that `common.native.tasks` gives, then the status of every call.
"""
_TARGETS = (JUMP, JUMP_FALSE, JUMP_REACHED, JUMP_OTHER)


class Argument(NamedTuple):
    """What one argument of a program must be, and the slot that receives its address."""

    kind: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    writes: bool
    slot: int

    @property
    def nbytes(self) -> int:
        """Bytes of an array argument; 0 for a number, which cannot overlap anything."""
        return math.prod(self.shape) * self.dtype.itemsize if self.kind == ARRAY else 0


class Instruction(NamedTuple):
    """One kernel call: address, frame slots of its buffers, integer arguments.

    Other instructions have their number in place of the address, and (a, b, c, d) as `ints`.
    """

    kernel: int
    slots: tuple[int, ...]
    ints: tuple[int, ...]


_THE_END = Instruction(END, (), (0, 0, 0, 0))


class ProgramPlan:
    """Arguments, addresses and kernel calls of one program.

    Parameters
    ----------
    base : address of the memory for temporaries.

    Attributes
    ----------
    places : slots of addresses in that memory.
    words : the frame while the program runs, and what its last run left there.

    Every ``add_...`` method for a value returns its *slot*, which `add_call` takes.

    Examples
    --------
    >>> plan = ProgramPlan()
    >>> x = plan.add_array(np.float32, (8,))
    >>> y = plan.add_array(np.float32, (8,), writes=True)
    >>> plan.add_call(0x1000, [x, y], [8])
    >>> [argument.writes for argument in plan.arguments]
    [False, True]
    """

    def __init__(self, base: int = 0) -> None:
        self.base = base
        self.places: list[int] = []
        self.arguments: list[Argument] = []
        self.instructions: list[Instruction] = []
        self.frame: list[int] = []
        self.keep: list[Any] = []
        self.words: Any = ()

    def add_array(self, dtype: Any, shape: Sequence[int], writes: bool = False) -> int:
        """Declare the next argument: an exact, C-contiguous, aligned ndarray, writeable if `writes`.

        A written argument must overlap no other argument; the call is refused otherwise.
        """
        return self._argument(Argument(ARRAY, np.dtype(dtype), tuple(map(int, shape)), writes, len(self.frame)))

    def add_float(self) -> int:
        """Declare the next argument: a Python float, for kernels a float64 buffer of one element."""
        return self._argument(Argument(FLOAT, np.dtype(np.float64), (), False, self._cell(np.float64)))

    def add_int(self) -> int:
        """Declare the next argument: a Python int, for kernels an int64 buffer of one element."""
        return self._argument(Argument(INT, np.dtype(np.int64), (), False, self._cell(np.int64)))

    def add_memory(self, array: np.ndarray, offset: int = 0) -> int:
        """Return a slot for the address `offset` bytes into `array` (arena, constant), kept alive."""
        if not any(array is kept for kept in self.keep[-4:]):
            self.keep.append(array)
        self.frame.append(array.__array_interface__["data"][0] + offset)
        return len(self.frame) - 1

    def add_call(self, kernel: int, slots: Sequence[int], ints: Sequence[int] = ()) -> None:
        """Append a kernel call: ``bufs`` are the addresses in `slots`, ``args`` are `ints`.

        Raises
        ------
        ValueError
            A slot that does not exist.
        """
        if not kernel or (slots and not 0 <= min(slots) <= max(slots) < len(self.frame)):
            raise ValueError(f"no such kernel or slot: {kernel:#x}, {list(slots)}")
        self.instructions.append(Instruction(int(kernel), tuple(slots), tuple(map(int, ints))))

    def add_word(self) -> int:
        """Return a slot for a counter, or for an address that instructions set."""
        self.frame.append(0)
        return len(self.frame) - 1

    def add_place(self, offset: int) -> int:
        """Return a slot for the address `offset` bytes into the memory for temporaries; instructions do not set it."""
        self.places.append(len(self.frame))
        self.frame.append(self.base + offset)
        return len(self.frame) - 1

    def add_op(self, op: int, a: int = 0, b: int = 0, c: int = 0, d: int = 0) -> int:
        """Append an instruction that is no kernel call, and return its number."""
        self.instructions.append(Instruction(op, (), (a, b, c, d)))
        return len(self.instructions) - 1

    def add_shared(self, kernel: int, calls: Sequence[tuple[Sequence[int], Sequence[int]]]) -> None:
        """Append calls of one kernel, given slots and ints of each, that do not depend on each other."""
        slots, ints = calls[0]
        share, task = addresses()
        first = len(self.frame)
        self.frame += [share, task, *(0 for _ in calls)]
        self.add_op(SHARE, len(calls), 4 + len(slots) + len(ints), first)
        for slots, ints in calls:
            self.add_call(kernel, slots, ints)

    def set_target(self, jump: int) -> None:
        """Let a jump, known by its number, lead to the next instruction to be appended."""
        op, _, (a, b, c, _) = self.instructions[jump]
        self.instructions[jump] = Instruction(op, (), (a, b, c, len(self.instructions)))

    def _argument(self, argument: Argument) -> int:
        if argument.kind == ARRAY:
            self.frame.append(0)
        self.arguments.append(argument)
        return argument.slot

    def _cell(self, dtype: Any) -> int:
        return self.add_memory(np.zeros(1, dtype))

    @property
    def most_buffers(self) -> int:
        """Number of buffers of the kernel call that has most of them."""
        return max((len(slots) for _, slots, _ in self.instructions), default=0)

    def pack(self, addresses: Sequence[int], table: Table | None = None) -> np.ndarray:
        """Return the table of `common.native.run_ir` as an int64 array.

        Parameters
        ----------
        addresses : where frame, last and bufs are.
        table : of the objects to which the program is bound.
        """
        count = len(self.arguments)
        sources = [(GIVEN, 0, -1, 0)] * count if table is None else table.records(self.arguments)
        records, starts = self.records(sources)
        code = self.code()
        sizes = [argument.nbytes for argument in self.arguments]
        writes = [int(argument.writes) for argument in self.arguments]
        *offsets, end = np.cumsum([10, len(records), len(code), count, count]).tolist()
        bound = [] if table is None else table.words(10 + [*starts, 0][table.first])
        counts = [count, sum(source[0] == GIVEN for source in sources)]
        words = [*counts, *addresses, *offsets, end if bound else 0, *records, *code, *sizes, *writes, *bound]
        return np.array(words, dtype=np.int64)

    def records(self, sources: Sequence[tuple[int, int, int, int]]) -> tuple[list[int], list[int]]:
        """The records of the arguments, given their four words on objects, and where each begins."""
        records: list[int] = []
        starts: list[int] = []
        for argument, source in zip(self.arguments, sources, strict=True):
            starts.append(len(records))
            flags = C_CONTIGUOUS | ALIGNED | (WRITEABLE if argument.writes else 0)
            is_array = argument.kind == ARRAY
            subject = descr_word(argument.dtype) if is_array else self.frame[argument.slot]
            records += (argument.kind, subject, len(argument.shape), flags, argument.slot, *source, *argument.shape)
        return records, starts

    def code(self) -> list[int]:
        """The instructions as words."""
        code: list[int] = []
        places = np.cumsum([0, *(6 if i.kernel < 64 else 4 + len(i.slots) + len(i.ints) for i in self.instructions)])
        for number, (kernel, slots, ints) in enumerate([*self.instructions, _THE_END]):
            if kernel >= 64:
                code += (kernel, number, len(slots), *slots, len(ints), *ints)
            else:
                d = int(places[ints[3]]) if kernel in _TARGETS else ints[3]
                code += (kernel, number, *ints[:3], d)
        return code


class RunFailure(NamedTuple):
    """Why a program returned non-zero.

    Attributes
    ----------
    kind : str
        ``"argument"``: nothing has run, argument `position` is not what the plan asks for (or the count is
        wrong); ``"overlap"``: nothing has run, argument `position` overlaps another one and one of them is
        written; ``"status"``: the kernel of instruction `position` returned `status`, the later ones have not
        run; INTERRUPTED is none of a kernel's: a signal's handler is to run, see `common.native.execute_ir`.
    position, status : int
    """

    kind: str
    position: int
    status: int = 0


def explain_failure(code: int) -> RunFailure:
    """Return what a non-zero result of a program means.

    Examples
    --------
    >>> explain_failure((5 << 32) | 2)
    RunFailure(kind='status', position=4, status=2)
    """
    if code >> 32:
        return RunFailure("status", (code >> 32) - 1, code & 0xFFFFFFFF)
    if code >= OVERLAP:
        return RunFailure("overlap", code - OVERLAP)
    return RunFailure("argument", code - BAD_ARGUMENT)
