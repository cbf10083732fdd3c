"""From a program to the table of a native call: kernels, and jumps for its regions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from common.native import plan as ops
from common.native.plan import ProgramPlan
from static.lowering.constructs import Act, Loop, Switch
from static.lowering.layout import Block, Layout
from static.running.host import OTHER_PATH, ROOM, Host

if TYPE_CHECKING:
    from static.lowering.frame import Call
    from static.running.executable import Executable
    from static.running.shares import Ranges


class Emitter:
    """Writes programs to a plan.

    Attributes
    ----------
    calls : per instruction of the plan the call that it belongs to.
    host : makes the calls to Python, if there are any.
    observed : per instruction that ends a program for a decision, the word of the frame that holds what was decided on.
    """

    def __init__(self, native: ProgramPlan) -> None:
        self.native = native
        self.calls: list[Call] = []
        self.observed: dict[int, int] = {}
        self.host: Host | None = None
        self._zero: int | None = None

    @property
    def zero(self) -> int:
        """A word that is 0."""
        if self._zero is None:
            self._zero = self.native.add_word()
        return self._zero

    def program(self, program: Executable, layout: Layout, base: int, bound: Sequence[int]) -> None:
        """Append a program whose inputs and outputs lie in the slots `bound`, its temporaries from `base` on."""
        native, frame, values = self.native, program.frame, layout.values
        slots = [*bound, *(native.add_place(base + offset) for offset in layout.offsets)]
        for dtype, number, index in frame.constants:
            with np.errstate(all="ignore"):
                cell = np.zeros(8, np.uint8)
                cell[: dtype.itemsize].view(dtype)[0] = number if index is None else values[index]
            slots.append(native.add_memory(cell))
        for i, call in enumerate(frame.calls):
            own = [slots[slot] for slot in call.slots]
            if isinstance(call.construct, Act):
                self.act(call.construct, own, values)
            elif call.construct is not None:
                at = base + layout.offsets[call.slots[-1] - len(bound)]
                if isinstance(call.construct, Loop):
                    self.loop(call, call.construct, layout.blocks[i], at, own, values)
                else:
                    self.switch(call, call.construct, layout.blocks[i], at, own)
            elif i in layout.shared:
                self.shared(program.addresses[i], call, own, layout.shared[i], layout, base, len(bound))
            else:
                native.add_call(program.addresses[i], own, [values[j] for j in call.ints])
            self.note(call)

    def shared(
        self, kernel: int, call: Call, slots: list[int], parts: Ranges, layout: Layout, base: int, bound: int
    ) -> None:
        """Append the parts of a loop, each with scratch memory of its own."""
        ints, calls = [layout.values[j] for j in call.ints[:-2]], []
        for k, part in enumerate(parts):
            own = slots.copy()
            for place, thing in enumerate(call.slots):
                if 0 <= (index := thing - bound) < len(layout.scratch) and layout.scratch[index]:
                    offset = layout.offsets[index] + k * (layout.nbytes[index] // len(parts))
                    own[place] = self.native.add_place(base + offset)
            calls.append((own, [*ints, *part]))
        self.native.add_shared(kernel, calls)

    def note(self, call: Call) -> None:
        """The instructions appended since the last note belong to a call."""
        self.calls += [call] * (len(self.native.instructions) - len(self.calls))

    def act(self, act: Act, slots: Sequence[int], values: Sequence[int]) -> None:
        """Append an act: a decision, or a call to Python."""
        if act.kind == "expect":
            self.expect(act.attrs["bits"], slots[0])
        else:
            self.host = self.host or Host()
            self.native.add_call(self.host.callback(act, values), slots)

    def expect(self, bits: int, slot: int) -> None:
        """Append a decision: the program ends if the 64 bits at a slot are others."""
        native, word = self.native, self.native.add_word()
        native.add_op(ops.LOAD, word, slot)
        other = native.add_op(ops.JUMP_OTHER, word, bits)
        onward = native.add_op(ops.JUMP)
        native.set_target(other)
        self.observed[native.add_op(ops.LIMIT, self.zero, 0, OTHER_PATH)] = word
        native.set_target(onward)

    def switch(self, call: Call, switch: Switch, block: Block, base: int, slots: Sequence[int]) -> None:
        """Append branches: the index is compared with each number but the last."""
        native, results = self.native, slots[switch.results : -1]
        index = native.add_word()
        native.add_op(ops.LOAD, index, slots[0])
        ends = []
        for i, uses in enumerate(switch.uses):
            last = i == len(switch.uses) - 1
            other = -1 if last else native.add_op(ops.JUMP_OTHER, index, i)
            self.note(call)
            layout, start = block.regions[f"branch{i}"]
            self.program(call.regions[f"branch{i}"], layout, base + start, [*(slots[j] for j in uses), *results])
            if not last:
                ends.append(native.add_op(ops.JUMP))
                native.set_target(other)
        for end in ends:
            native.set_target(end)

    def loop(
        self, call: Call, loop: Loop, block: Block, base: int, slots: Sequence[int], values: Sequence[int]
    ) -> None:
        """Append a loop. What is carried changes places with its other buffer after each iteration."""
        native = self.native
        now = [native.add_word() for _ in loop.carried]
        then = [native.add_word() for _ in loop.carried]
        others = [native.add_place(base + offset) for offset in block.buffers[:-1]]
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
            answer = native.add_place(base + block.buffers[-1])
            layout, offset = block.regions["condition"]
            tests = [slots[i] for i in loop.tests]
            self.program(call.regions["condition"], layout, base + offset, [*now, *tests, answer])
            leave = native.add_op(ops.JUMP_FALSE, answer)
            if loop.stacked:
                native.add_op(ops.LIMIT, done, values[loop.length], ROOM)
        row = place if loop.backwards else done
        rows = [self._row(slots[i], row, values[size]) for i, size in loop.rows]
        stacks = [self._row(slots[i], row, values[size]) for i, size in loop.stacked]
        self.note(call)
        layout, offset = block.regions["body"]
        constants = [slots[i] for i in loop.constants]
        self.program(call.regions["body"], layout, base + offset, [*now, *rows, *constants, *then, *stacks])
        for a, b in zip(now, then):
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

    def _row(self, stack: int, row: int, size: int) -> int:
        """A slot for a row of a stack."""
        slot = self.native.add_word()
        self.native.add_op(ops.ROW, slot, stack, row, size)
        return slot
