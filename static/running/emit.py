"""From a program to the table of a native call: kernels, and jumps for its regions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from common.runtime import execute_text as ops
from common.runtime.program_plan import ProgramPlan
from common.runtime.table_words import Number, SizeWord
from static.lowering.ir.control_steps import ITERATIONS, PROGRESS, Act, LoopStep, SwitchStep
from static.lowering.memory.layout import MemoryLayout, RegionMemory, schedule_of
from static.running.python_calls import OTHER_PATH, ROOM

if TYPE_CHECKING:
    from static.lowering.memory.call_table import Frame, TableEntry


KernelCall = tuple[int, list[int], list[Number]]
"""A kernel's address, the slots of its buffers, and its arguments."""


class Emitter:
    """Writes programs to a plan, with holes for what depends on sizes.

    Parameters
    ----------
    count : how many numbers `static.lowering.memory.layout.numbers` gives.
    kernel : ``kernel(frame, step, layout)`` is the address of a call's kernel.

    Attributes
    ----------
    calls : per instruction of the plan the call that it belongs to.
    observed : per instruction that ends a program for a decision, the word of the frame that holds what was decided on.
    addresses : what the numbers that follow are addresses of: a constant (dtype, and the number that it is), a kernel
        that acts (and where the sizes of its frame begin), or memory that the plan keeps (None, and how large it is).
    """

    def __init__(self, native: ProgramPlan, count: int, kernel: Callable[[Frame, int, MemoryLayout], int]) -> None:
        self.native, self._count, self.kernel = native, count, kernel
        self.calls: list[TableEntry] = []
        self.observed: dict[int, int] = {}
        self.addresses: list[tuple[np.dtype[Any] | Act | None, int]] = []
        self._zero: int | None = None

    @property
    def zero(self) -> int:
        """A word that is 0."""
        if self._zero is None:
            self._zero = self.native.add_word()
        return self._zero

    def address(self, of: np.dtype[Any] | Act | None, number: int) -> SizeWord:
        """The address of something that a plan makes, see `addresses`."""
        self.addresses.append((of, number))
        return SizeWord(self._count + len(self.addresses) - 1)

    def program(self, frame: Frame, layout: MemoryLayout, bound: Sequence[int]) -> None:
        """Append a program whose inputs and outputs lie in the slots `bound`."""
        native, values = self.native, sizes(frame, layout)
        place = layout.first + len(values)
        slots = [*bound]
        for i, temporary in enumerate(frame.temporaries):
            if i in layout.kept:
                slots.append(native.add_word(self.address(None, layout.first + temporary.size[0])))
            else:
                slots.append(native.add_place(SizeWord(place + i)))
        for dtype, number, index in frame.constants:
            slots.append(self.constant(dtype, number if index is None else values[index]))
        taken = {i for steps in layout.beside.values() for i in steps}
        known = native.add_word() if layout.kept else 0  # words outlast calls
        later = native.add_op(ops.JUMP_OTHER, known, 0) if layout.kept else 0
        for i, call in enumerate(frame.calls):
            if i == frame.kept and layout.kept:
                native.add_op(ops.SET, known, self.zero, d=1)
                native.set_target(later)
            if i in layout.beside:
                self.beside(frame, layout.beside[i], slots, layout, len(bound))
            if i in taken:
                continue
            own = [slots[slot] for slot in call.slots]
            if isinstance(call.construct, Act):
                self.act(call.construct, own, layout)
            elif isinstance(call.construct, LoopStep):
                self.loop(call, call.construct, layout.blocks[i], own, values)
            elif call.construct is not None:
                self.switch(call, call.construct, layout.blocks[i], own)
            elif i in layout.shared:
                native.add_shared(self.parts(frame, i, own, layout, len(bound)))
            else:
                native.add_call(self.kernel(frame, i, layout), own, [values[j] for j in call.ints])
            self.note(call)

    def constant(self, dtype: np.dtype[Any], number: Any) -> int:
        """A slot for the address of a number."""
        if type(number) is SizeWord:
            return self.native.add_word(self.address(dtype, number.position))
        cell = np.zeros(1, np.int64)
        write_number(cell, dtype, number)
        return self.native.add_memory(cell)

    def beside(self, frame: Frame, steps: list[int], slots: list[int], layout: MemoryLayout, bound: int) -> None:
        """Append calls that threads make at the same time, and the parts of loops among them."""
        values = sizes(frame, layout)
        calls: list[KernelCall] = []
        owners: list[TableEntry] = []
        for i in steps:
            call = frame.calls[i]
            own = [slots[slot] for slot in call.slots]
            if i in layout.shared:
                calls += self.parts(frame, i, own, layout, bound)
            else:
                calls.append((self.kernel(frame, i, layout), own, [values[j] for j in call.ints]))
            owners += [call] * (len(calls) - len(owners))
        self.native.add_shared(calls)
        self.calls += [owners[0], *owners]

    def parts(self, frame: Frame, step: int, slots: list[int], layout: MemoryLayout, bound: int) -> list[KernelCall]:
        """The parts of a loop, each with scratch memory of its own."""
        call, values = frame.calls[step], sizes(frame, layout)
        memory = [bound + k for k in schedule_of(frame).scratch.get(step, ())]
        scratch = [k for k, slot in enumerate(call.slots) if slot in memory]
        ints, first = [values[j] for j in call.ints[:-2]], layout.parts[step]
        calls: list[KernelCall] = []
        for _ in layout.shared[step]:
            own = slots.copy()
            for k, place in enumerate(scratch):
                own[place] = self.native.add_place(SizeWord(first + 2 + k))
            calls.append((self.kernel(frame, step, layout), own, [*ints, SizeWord(first), SizeWord(first + 1)]))
            first += 2 + len(scratch)
        return calls

    def note(self, call: TableEntry) -> None:
        """The instructions appended since the last note belong to a call."""
        self.calls += [call] * (len(self.native.instructions) - len(self.calls))

    def act(self, act: Act, slots: Sequence[int], layout: MemoryLayout) -> None:
        """Append an act: a decision, or a call to Python."""
        if act.kind == "expect":
            self.expect(act.attrs["bits"], slots[0])
        else:
            self.native.add_call(self.address(act, layout.first), slots)

    def expect(self, bits: int, slot: int) -> None:
        """Append a decision: the program ends if the 64 bits at a slot are others."""
        native, word = self.native, self.native.add_word()
        native.add_op(ops.LOAD, word, slot)
        other = native.add_op(ops.JUMP_OTHER, word, bits)
        onward = native.add_op(ops.JUMP)
        native.set_target(other)
        self.observed[native.add_op(ops.LIMIT, self.zero, 0, OTHER_PATH)] = word
        native.set_target(onward)

    def switch(self, call: TableEntry, switch: SwitchStep, block: RegionMemory, slots: Sequence[int]) -> None:
        """Append branches: the index is compared with each number but the last."""
        native, results = self.native, slots[switch.results : -1]
        index = native.add_word()
        native.add_op(ops.LOAD, index, slots[0])
        ends = []
        for i, uses in enumerate(switch.uses):
            last = i == len(switch.uses) - 1
            other = -1 if last else native.add_op(ops.JUMP_OTHER, index, i)
            self.note(call)
            layout, _ = block.regions[f"branch{i}"]
            self.program(call.regions[f"branch{i}"], layout, [*(slots[j] for j in uses), *results])
            if not last:
                ends.append(native.add_op(ops.JUMP))
                native.set_target(other)
        for end in ends:
            native.set_target(end)

    def loop(
        self, call: TableEntry, loop: LoopStep, block: RegionMemory, slots: Sequence[int], values: Sequence[Number]
    ) -> None:
        """Append a loop. What is carried changes places with its other buffer after each iteration, if it has one."""
        if ITERATIONS in call.regions:
            self.iterations(call, loop, block, slots, values)
            return
        native = self.native
        now = [native.add_word() for _ in loop.carried]
        then = [native.add_word() for _ in loop.carried]
        others = [native.add_place(SizeWord(block.first + k)) for k in range(len(loop.carried))]
        for k, (start, result, size) in enumerate(loop.carried):
            native.add_op(ops.SET, now[k], slots[result])
            native.add_op(ops.SET, then[k], others[k])
            native.add_op(ops.COPY, now[k], slots[start], d=values[size])
        done, limit, place = native.add_word(), native.add_word(), native.add_word()
        native.add_op(ops.SET, done, self.zero)
        if loop.counted:
            native.add_op(ops.LOAD, limit, slots[0])
        elif not loop.asks:
            native.add_op(ops.SET, limit, self.zero, d=values[loop.length])
        if loop.backwards:
            native.add_op(ops.SET, place, limit, d=-1)
        self.note(call)
        top = len(native.instructions)
        if not loop.asks:
            leave = native.add_op(ops.JUMP_REACHED, done, limit)
        else:
            answer = native.add_place(SizeWord(block.first + len(loop.carried)))
            layout, _ = block.regions["condition"]
            tests = [slots[i] for i in loop.tests]
            self.program(call.regions["condition"], layout, [*now, *tests, answer])
            leave = native.add_op(ops.JUMP_FALSE, answer)
            if loop.stacked:
                native.add_op(ops.LIMIT, done, values[loop.length], ROOM)
        row = place if loop.backwards else done
        rows = [self._row(slots[i], row, values[size]) for i, size in loop.rows]
        stacks = [self._row(slots[i], row, values[size]) for i, size in loop.stacked]
        self.note(call)
        layout, _ = block.regions["body"]
        constants = [slots[i] for i in loop.constants]
        self.program(call.regions["body"], layout, [*now, *rows, *constants, *then, *stacks])
        for output, a, b in zip(call.regions["body"].outputs, now, then):
            if output.over is None:
                native.add_op(ops.SWAP, a, b)
        native.add_op(ops.SET, done, done, d=1)
        if loop.backwards:
            native.add_op(ops.SET, place, place, d=-1)
        native.add_op(ops.JUMP, d=top)
        native.set_target(leave)
        for k, (_, result, size) in enumerate(loop.carried):
            native.add_op(ops.COPY, slots[result], now[k], d=values[size])
        if loop.asks:
            native.add_op(ops.STORE, slots[-2], done)

    def iterations(
        self, call: TableEntry, loop: LoopStep, block: RegionMemory, slots: Sequence[int], values: Sequence[Number]
    ) -> None:
        """Append a loop that is one kernel: it is called until it has done all iterations."""
        native = self.native
        done, limit, asking, more = (native.add_place(SizeWord(block.first + k)) for k in range(len(PROGRESS)))
        for start, result, size in loop.carried:
            native.add_op(ops.COPY, slots[result], slots[start], d=values[size])
        count, end, over = native.add_word(), native.add_word(), native.add_word()
        native.add_op(ops.SET, count, self.zero)
        native.add_op(ops.STORE, done, count)
        if loop.counted:
            native.add_op(ops.LOAD, end, slots[0])
        else:
            native.add_op(ops.SET, end, self.zero, d=values[loop.length])
        native.add_op(ops.STORE, limit, end)
        top = len(native.instructions)
        leave = -1 if loop.asks else native.add_op(ops.JUMP_REACHED, count, end)
        self.note(call)
        layout, _ = block.regions[ITERATIONS]
        bound = [*(slots[i] for i in loop.bound), done, limit, asking, more]
        self.program(call.regions[ITERATIONS], layout, bound)
        native.add_op(ops.LOAD, count, done)
        if loop.asks:
            leave = native.add_op(ops.JUMP_FALSE, asking)
            native.add_op(ops.LOAD, over, more)
            native.add_op(ops.LIMIT, over, 1, ROOM)
        native.add_op(ops.JUMP, d=top)
        native.set_target(leave)
        if loop.asks:
            native.add_op(ops.STORE, slots[-2], count)

    def _row(self, stack: int, row: int, size: Number) -> int:
        """A slot for a row of a stack."""
        slot = self.native.add_word()
        self.native.add_op(ops.ROW, slot, stack, row, size)
        return slot


def sizes(frame: Frame, layout: MemoryLayout) -> list[Number]:
    """The sizes of a frame, as far as they are known."""
    return [n if type(n) is int else SizeWord(layout.first + i) for i, n in enumerate(frame.sizes)]


def write_number(cell: np.ndarray, dtype: np.dtype[Any], number: Any) -> None:
    """Write a number to a cell of 8 bytes, as a kernel reads it."""
    with np.errstate(all="ignore"):
        cell.view(np.uint8)[: dtype.itemsize].view(dtype)[0] = np.asarray(number).astype(dtype)
