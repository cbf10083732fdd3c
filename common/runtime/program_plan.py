"""A compiled program as data: conditions on its arguments, the addresses it needs, the kernels it runs.

A plan is written down once, with `SizeWord` in place of every number that depends on sizes. `ProgramPlan.at` gives it
sizes: the words of the native table are copied and those numbers put in, all at once, so new sizes cost microseconds
per plan and nothing per kernel. `common.runtime.builtins.make_run` turns it into one native call.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from common.runtime.argument_checks import ARRAY, FLOAT, INT, ArgumentCheck
from common.runtime.bound_program import GIVEN, Binding
from common.runtime.cpython_abi import ALIGNED, C_CONTIGUOUS, WRITEABLE, descr_word
from common.runtime.execute_text import END, JUMP, JUMP_FALSE, JUMP_OTHER, JUMP_REACHED, SHARE
from common.runtime.run_text import BAD_ARGUMENT, OVERLAP
from common.runtime.table_words import Number, SizeWord, Words
from common.runtime.tasks import addresses

_TARGETS = (JUMP, JUMP_FALSE, JUMP_REACHED, JUMP_OTHER)


class Instruction(NamedTuple):
    """One kernel call: address, frame slots of its buffers, integer arguments.

    Other instructions have their number in place of the address, and (a, b, c, d) as `ints`.
    """

    kernel: Number
    slots: tuple[int, ...]
    ints: tuple[Number, ...]

    @property
    def op(self) -> int:
        """The number of the instruction; -1 for a kernel call."""
        return self.kernel if type(self.kernel) is int and self.kernel < 64 else -1


_THE_END = Instruction(END, (), (0, 0, 0, 0))


class ProgramPlan:
    """Arguments, addresses and kernel calls of one program.

    Attributes
    ----------
    places : slots of addresses in the memory for temporaries.
    base : address of that memory.
    numbers : what stands in place of every `SizeWord`.
    words : the frame while the program runs, and what its last run left there.

    Every ``add_...`` method for a value returns its *slot*, which `add_call` takes.

    Examples
    --------
    >>> plan = ProgramPlan()
    >>> x = plan.add_array(np.float32, (SizeWord(0),))
    >>> y = plan.add_array(np.float32, (SizeWord(0),), writes=True)
    >>> plan.add_call(0x1000, [x, y], [SizeWord(0)])
    >>> [argument.shape for argument in plan.at([8]).exact_arguments()]
    [(8,), (8,)]
    """

    def __init__(self) -> None:
        self.places: list[int] = []
        self.arguments: list[ArgumentCheck] = []
        self.instructions: list[Instruction] = []
        self.frame: list[Number] = []
        self.keep: list[Any] = []
        self.base, self.numbers, self.words = 0, np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._shared = _Shared()

    def at(self, numbers: Sequence[int], base: int = 0) -> ProgramPlan:
        """The program for given sizes; nothing may be added to it, or to this, any more.

        Parameters
        ----------
        numbers : those that were to come later.
        base : address of the memory for temporaries.
        """
        plan = copy.copy(self)
        nbytes = [_exact(self.arguments[i], numbers).nbytes for i in self.sized]
        plan.numbers = np.array([*numbers, *nbytes], np.int64)
        plan.base, plan.keep, plan.words = base, [self.keep], np.zeros(0, np.int64)
        return plan

    # ---------------------------------------------------------------- writing down
    def add_array(self, dtype: Any, shape: Sequence[Number], writes: bool = False) -> int:
        """Declare the next argument: an exact, C-contiguous, aligned ndarray, writeable if `writes`.

        A written argument must overlap no other argument; the call is refused otherwise.
        """
        return self._argument(ArgumentCheck(ARRAY, np.dtype(dtype), tuple(shape), writes, len(self.frame)))

    def add_float(self) -> int:
        """Declare the next argument: a Python float, for kernels a float64 buffer of one element."""
        return self._argument(ArgumentCheck(FLOAT, np.dtype(np.float64), (), False, self._cell(np.float64)))

    def add_int(self) -> int:
        """Declare the next argument: a Python int, for kernels an int64 buffer of one element."""
        return self._argument(ArgumentCheck(INT, np.dtype(np.int64), (), False, self._cell(np.int64)))

    def add_memory(self, array: np.ndarray, offset: int = 0) -> int:
        """Return a slot for the address `offset` bytes into `array` (arena, constant), kept alive."""
        self.keep.append(array)
        return self.add_word(array.__array_interface__["data"][0] + offset)

    def add_call(self, kernel: Number, slots: Sequence[int], ints: Sequence[Number] = ()) -> None:
        """Append a kernel call: ``bufs`` are the addresses in `slots`, ``args`` are `ints`.

        Raises
        ------
        ValueError
            A slot that does not exist.
        """
        if not kernel or (slots and not 0 <= min(slots) <= max(slots) < len(self.frame)):
            raise ValueError(f"no such kernel or slot: {kernel}, {list(slots)}")
        self.instructions.append(Instruction(kernel, tuple(slots), tuple(ints)))

    def add_word(self, value: Number = 0) -> int:
        """Return a slot for an address, for a counter, or for an address that instructions set."""
        self.frame.append(value)
        return len(self.frame) - 1

    def add_place(self, offset: Number) -> int:
        """Return a slot for the address `offset` bytes into the memory for temporaries; instructions do not set it."""
        self.places.append(len(self.frame))
        return self.add_word(offset)

    def add_op(self, op: int, a: int = 0, b: Number = 0, c: int = 0, d: Number = 0) -> int:
        """Append an instruction that is no kernel call, and return its number."""
        self.instructions.append(Instruction(op, (), (a, b, c, d)))
        return len(self.instructions) - 1

    def add_shared(self, calls: Sequence[tuple[int, Sequence[int], Sequence[Number]]]) -> None:
        """Append calls, given kernel, slots and ints of each, that do not depend on each other."""
        share, task = addresses()
        first, most = len(self.frame), max(len(slots) + len(ints) for _, slots, ints in calls)
        self.frame += [share, task, *(0 for _ in calls)]
        self.add_op(SHARE, len(calls), 4 + most, first)
        for kernel, slots, ints in calls:  # of one length, so that a task finds its call
            self.add_call(kernel, slots, [*ints, *[0] * (most - len(slots) - len(ints))])

    def set_target(self, jump: int) -> None:
        """Let a jump, known by its number, lead to the next instruction to be appended."""
        op, _, (a, b, c, _) = self.instructions[jump]
        self.instructions[jump] = Instruction(op, (), (a, b, c, len(self.instructions)))

    def _argument(self, argument: ArgumentCheck) -> int:
        if argument.kind == ARRAY:
            self.frame.append(0)
        self.arguments.append(argument)
        return argument.slot

    def _cell(self, dtype: Any) -> int:
        return self.add_memory(np.zeros(1, dtype))

    # ---------------------------------------------------------------- what does not depend on sizes
    @property
    def sized(self) -> list[int]:
        """The arguments whose shapes depend on sizes."""
        if self._shared.sized is None:
            self._shared.sized = [i for i, argument in enumerate(self.arguments) if argument.is_sized]
        return self._shared.sized

    @property
    def most_buffers(self) -> int:
        """Number of buffers of the kernel call that has most of them."""
        if self._shared.most_buffers is None:
            self._shared.most_buffers = max((len(slots) for _, slots, _ in self.instructions), default=0)
        return self._shared.most_buffers

    @property
    def code(self) -> Words:
        """The instructions."""
        if self._shared.code is None:
            self._shared.code = Words(self._code())
        return self._shared.code

    def _code(self) -> list[Number]:
        code: list[Number] = []
        lengths = (4 + len(i.slots) + len(i.ints) if i.op < 0 else 6 for i in self.instructions)
        places = list(accumulate(lengths, initial=0))
        for number, instruction in enumerate([*self.instructions, _THE_END]):
            kernel, slots, ints = instruction
            if instruction.op < 0:
                code += (kernel, number, len(slots), *slots, len(ints), *ints)
            else:
                d = places[ints[3]] if kernel in _TARGETS else ints[3]  # type: ignore[index]
                code += (kernel, number, *ints[:3], d)
        return code

    def records(self, sources: Sequence[tuple[int, int, int, int]]) -> tuple[Words, list[int]]:
        """The records of the arguments, given their four words on objects, and where each begins."""
        records: list[Number] = []
        starts: list[int] = []
        for argument, source in zip(self.arguments, sources, strict=True):
            starts.append(len(records))
            flags = C_CONTIGUOUS | ALIGNED | (WRITEABLE if argument.writes else 0)
            is_array = argument.kind == ARRAY
            subject = descr_word(argument.dtype) if is_array else self.frame[argument.slot]
            records += (argument.kind, subject, len(argument.shape), flags, argument.slot, *source, *argument.shape)
        return Words(records), starts

    def _table(self, binding: Binding | None) -> Words:
        count, sized = len(self.arguments), len(self.sized)
        sources = [(GIVEN, 0, -1, 0)] * count if binding is None else binding.records(self.arguments)
        records, starts = self.records(sources)
        code = self.code
        nbytes: list[Number] = [0 if x.is_sized else x.nbytes for x in self.arguments]
        for k, i in enumerate(self.sized):
            nbytes[i] = SizeWord(k - sized)  # the last of the numbers, see `at`
        writes = [int(argument.writes) for argument in self.arguments]
        *offsets, end = np.cumsum([10, len(records), len(code), count, count]).tolist()
        bound = [] if binding is None else binding.words(10 + [*starts, 0][binding.first])
        counts = [count, sum(source[0] == GIVEN for source in sources)]
        head = Words([*counts, 0, 0, 0, *offsets, end if bound else 0])
        return Words.joined([head, records, code, Words([*nbytes, *writes, *bound])])

    # ---------------------------------------------------------------- for given sizes
    def pack(self, addresses: Sequence[int], binding: Binding | None = None) -> np.ndarray:
        """Return the table of `common.runtime.run_text` as an int64 array.

        Parameters
        ----------
        addresses : where frame, last and bufs are.
        binding : the objects to which the program is bound.
        """
        tables = self._shared.tables if binding is None else binding.tables
        made = tables.get(self._shared)
        if made is None:
            made = tables[self._shared] = self._table(binding)
        words = made.at(self.numbers)
        words[2:5] = addresses
        return words

    def start(self) -> np.ndarray:
        """The frame, made at the first call."""
        if not len(self.words):
            if self._shared.frame is None:
                self._shared.frame = Words(self.frame or [0])
            self.words = self._shared.frame.at(self.numbers)
            self.words[self.places] += self.base
        return self.words

    def apart(self, binding: Binding | None = None) -> np.ndarray:
        """The words at `last`, see `common.runtime.run_text`, before a first call.

        It begins with what calls for other sizes have found to be apart: comparing all arguments with each other takes
        longer than all else that new sizes need.
        """
        count = len(self.arguments)
        last, before = np.zeros(2 * count + 1, np.int64), self._shared.last
        if before is not None:
            last[:count] = before[:count]
            last[self.sized] = 0
            if binding is not None:  # addresses of what a call makes are not looked at
                last[binding.first : count] = 0
        self._shared.last = last
        return last

    def exact(self, number: Number) -> int:
        """A number for the given sizes."""
        return number if type(number) is int else int(self.numbers[number[0]])  # type: ignore[index]

    def exact_arguments(self) -> list[ArgumentCheck]:
        """The arguments for the given sizes."""
        numbers = self.numbers.tolist()
        return [_exact(argument, numbers) for argument in self.arguments]


class _Shared:
    """The parts that plans of one program for different sizes share; made when first asked for.

    Attributes
    ----------
    last : that of the newest native call.
    tables : the table of a program that is bound to nothing.
    """

    def __init__(self) -> None:
        self.sized: list[int] | None = None
        self.most_buffers: int | None = None
        self.code: Words | None = None
        self.frame: Words | None = None
        self.last: np.ndarray | None = None
        self.tables: dict[_Shared, Words] = {}


def _exact(argument: ArgumentCheck, numbers: Sequence[int]) -> ArgumentCheck:
    if not argument.is_sized:
        return argument
    return argument._replace(shape=tuple([numbers[n[0]] if type(n) is SizeWord else n for n in argument.shape]))


class RunFailure(NamedTuple):
    """Why a program returned non-zero.

    Attributes
    ----------
    kind : str
        ``"argument"``: nothing has run, argument `position` is not what the plan asks for (or the count is
        wrong); ``"overlap"``: nothing has run, argument `position` overlaps another one and one of them is
        written; ``"status"``: the kernel of instruction `position` returned `status`, the later ones have not
        run; INTERRUPTED is none of a kernel's: a signal's handler is to run, see `common.runtime.execute_text`.
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
