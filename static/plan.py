"""A program for concrete sizes: memory, kernel arguments, and one native call."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from common.dim import Atom, Dim, evaluate, key
from common.eager import raise_status
from common.errors import ArgumentError, ShapeError
from common.native.calls import make_run
from common.native.plan import ProgramPlan, RunFailure, explain_failure
from static.lowering.arena import ALIGNMENT, place
from static.lowering.items import Buffer
from static.lowering.legalise import ColumnScratch
from static.lowering.nest import Scratch
from static.outputs import make_allocator

if TYPE_CHECKING:
    from static.compile import Program, Step


class Plan:
    """A program with all sizes known; call it with arrays in the order of the graph's inputs.

    Attributes
    ----------
    arena_bytes : size of the memory for temporaries.
    """

    def __init__(self, program: Program, env: Mapping[Atom, int]) -> None:
        self.program = program
        self._values = [evaluate(dim.terms, env) for dim in program.sizes]
        self._native = ProgramPlan()
        self._arguments = self._add_arguments()
        slots = self._place_temporaries()
        for index, (step, address) in enumerate(zip(program.steps, program.addresses, strict=True)):
            chosen = [slots[index, i] for i in range(len(step.things))]
            self._native.add_call(address, chosen, [self.size(n) for n in step.ints])
        self._run = make_run(self._native)

    def size(self, value: Any) -> int:
        """The value of a size."""
        return self._values[self.program.size_of[key(value)]] if isinstance(value, Dim) else int(value)

    def shape(self, shape: Sequence[Any]) -> tuple[int, ...]:
        """The values of sizes."""
        return tuple(self.size(n) for n in shape)

    # ---------------------------------------------------------------- building
    def _add_arguments(self) -> dict[int, int]:
        """Declare inputs and outputs; buffer id -> slot."""
        work, native = self.program.work, self._native
        written = {state.id for state, _ in work.writes}
        slots: dict[int, int] = {}
        self._written: list[int] = []
        for position, buffer in enumerate(work.inputs):
            weak = self.program.graph.inputs[position].spec.weak
            if weak and buffer.dtype == np.float64:
                slots[buffer.id] = native.add_float()
            elif weak and buffer.dtype == np.int64:
                slots[buffer.id] = native.add_int()
            else:
                writes = buffer.id in written
                slots[buffer.id] = native.add_array(buffer.dtype, self.shape(buffer.shape), writes)
                if writes:
                    self._written.append(position)
        self._allocate = []
        for buffer, shape in work.outputs:
            sizes = self.shape(shape)
            slots[buffer.id] = native.add_array(buffer.dtype, sizes, writes=True)
            self._allocate.append(make_allocator(sizes, buffer.dtype))
        return slots

    def _place_temporaries(self) -> dict[tuple[int, int], int]:
        """(step, position of the buffer) -> slot; temporaries get places in the arena."""
        lives: dict[int, list[Any]] = {}
        constants: dict[int, Buffer] = {}
        uses: list[tuple[int, int, int]] = []
        slots: dict[tuple[int, int], int] = {}
        for index, step in enumerate(self.program.steps):
            for position, thing in enumerate(step.things):
                own = thing.storage if isinstance(thing, Buffer) else thing
                if isinstance(own, Buffer) and own.id in self._arguments:
                    slots[index, position] = self._arguments[own.id]
                    continue
                if isinstance(own, Buffer) and own.constant is not None:
                    constants[own.id] = own
                    uses.append((index, position, id(own)))
                    continue
                life = lives.setdefault(id(own), [index, index, self._bytes(own)])
                life[1] = index
                uses.append((index, position, id(own)))
        offsets, total = place([tuple(life) for life in lives.values()])
        fixed = {id(b): total + i * ALIGNMENT for i, b in enumerate(constants.values())}
        self.arena_bytes = total + ALIGNMENT * len(fixed)
        arena = np.empty(self.arena_bytes + ALIGNMENT, np.uint8)
        start = -arena.__array_interface__["data"][0] % ALIGNMENT
        for buffer in constants.values():
            at = start + fixed[id(buffer)]
            arena[at : at + buffer.dtype.itemsize].view(buffer.dtype)[0] = self._constant(buffer)
        where = dict(zip(lives, offsets, strict=True)) | fixed
        known = {name: self._native.add_memory(arena, start + offset) for name, offset in where.items()}
        for index, position, name in uses:
            slots[index, position] = known[name]
        return slots

    def _constant(self, buffer: Buffer) -> Any:
        return self.size(buffer.constant) if isinstance(buffer.constant, Dim) else buffer.constant

    def _bytes(self, thing: Buffer | Scratch) -> int:
        if isinstance(thing, Buffer):
            return math.prod(self.shape(thing.shape)) * thing.dtype.itemsize
        size = thing.nbytes
        if isinstance(size, ColumnScratch):
            return size.nbytes(self.size(size.rows), self.size(size.columns))
        return self.size(size)

    # ---------------------------------------------------------------- running
    def __call__(self, *arrays: Any) -> list[np.ndarray]:
        """Run the program; state arrays are written if it succeeds.

        Returns
        -------
        list of ndarray
            The outputs; none of them shares memory with anything else.

        Raises
        ------
        ShapeError, ArgumentError : an array does not have the planned shape or dtype, or is not writeable.
        IndexRangeError, DivisionByZeroError : as the ops raise them, with the user's line.
        """
        outputs = [allocate() for allocate in self._allocate]
        code = self._run(*arrays, *outputs)
        if code:
            self._recover(list(arrays), outputs, explain_failure(code))
        return outputs

    def _recover(self, given: list[Any], outputs: list[np.ndarray], failure: RunFailure) -> None:
        """Copy arguments whose layout or overlap the native call refuses, and run again; or raise."""
        if failure.kind == "status":
            self._raise(self.program.steps[failure.position], failure.status)
        work, back, arrays = self.program.work, [], given.copy()
        if len(arrays) != len(work.inputs):
            raise ArgumentError(f"the program takes {len(work.inputs)} arrays, got {len(arrays)}")
        arrays[:] = [self._accepted(i, x, b) for i, (x, b) in enumerate(zip(arrays, work.inputs, strict=True))]
        for i, x in enumerate(given):
            if i in self._written:
                if not x.flags.writeable:
                    raise ArgumentError(f"array {i} is written by the program, but it is read-only")
                if any(np.may_share_memory(x, given[j]) for j in self._written if j != i):
                    raise ArgumentError(f"array {i} is written by the program, and so is an array that overlaps it")
                if arrays[i] is not x:
                    back.append((x, arrays[i]))
            elif isinstance(x, np.ndarray) and any(np.may_share_memory(arrays[i], arrays[j]) for j in self._written):
                arrays[i] = arrays[i].copy()
        code = self._run(*arrays, *outputs)
        if code:
            again = explain_failure(code)
            if again.kind != "status":
                raise ArgumentError(f"argument {again.position} of the program is not acceptable ({again.kind})")
            self._raise(self.program.steps[again.position], again.status)
        for target, value in back:
            target[...] = value

    def _accepted(self, position: int, x: Any, buffer: Buffer) -> np.ndarray:
        shape = self.shape(buffer.shape)
        if np.shape(x) != shape:
            raise ShapeError(f"array {position} has shape {np.shape(x)}, the program was planned for {shape}")
        if self.program.graph.inputs[position].spec.weak and buffer.dtype.itemsize == 8:
            return buffer.dtype.type(x).item()
        if x.dtype != buffer.dtype:
            raise ArgumentError(f"array {position} has dtype {x.dtype}, the program takes {buffer.dtype}")
        return np.require(np.asarray(x), buffer.dtype.newbyteorder("="), ["C", "A"])

    def _raise(self, step: Step, status: int) -> NoReturn:
        item = next((i for i in step.group.items if status in step.errors), step.group.items[0])
        file, line, _ = item.node.source
        try:
            raise_status(item.node.op, step.errors, status)
        except Exception as error:
            error.args = (f"{error.args[0]}\n  in {file}:{line}", *error.args[1:])
            raise
        raise AssertionError("a status always raises")
