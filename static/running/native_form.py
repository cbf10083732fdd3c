"""The native form of a program: instructions and arguments for all sizes, made once, then given sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from common.compiler.compile import batch
from common.compiler.host_kernels import MARK
from common.runtime.program_plan import ProgramPlan
from static.graph import Node
from static.lowering.ir.control_steps import Act
from static.lowering.memory.call_table import Frame
from static.lowering.memory.layout import MemoryLayout
from static.running.emit import Emitter, sizes, write_number
from static.running.overlaps import Overlaps
from static.running.python_calls import Host
from static.running.result_memory import ResultMemory


class Planned(Protocol):
    """The parts of a program that plans need."""

    frame: Frame
    memory: ResultMemory
    overlaps: Overlaps

    @property
    def for_threads(self) -> Planned:
        """The program with loops cut for several threads."""
        ...

    @property
    def outlasts(self) -> frozenset[int]:
        """The outputs to which nothing is written before the last call that may fail."""
        ...

    def address(self, frame: Frame, step: int, layout: MemoryLayout) -> int:
        """The address of a call's kernel."""
        ...

    def form(self, layout: MemoryLayout, count: int, cuts: tuple[int, ...]) -> NativeForm:
        """The native form of plans whose loops are cut as `cuts` says."""
        ...

    def node(self, number: int) -> Node:
        """The node with an id, also one of a region."""
        ...


class NativeForm:
    """The form that plans share if their loops are cut into equally many parts.

    Parameters
    ----------
    layout, count : of one of them, and how many numbers that has, see `static.lowering.memory.layout.numbers`.

    Attributes
    ----------
    native : the instructions.
    calls, observed : see `static.running.emit.Emitter`.
    written : the inputs that the program writes to.
    allocators : per output what allocates it; None where its shape depends on sizes.
    """

    def __init__(self, program: Planned, layout: MemoryLayout, count: int) -> None:
        frame, known = program.frame, sizes(program.frame, layout)
        self.native = native = ProgramPlan()
        for x in frame.inputs:
            if x.number:
                (native.add_float if x.dtype.kind == "f" else native.add_int)()
            else:
                native.add_array(x.dtype, [known[i] for i in x.shape], x.written)
        self.written = [i for i, x in enumerate(frame.inputs) if x.written]
        self.allocators: list[Callable[[], np.ndarray] | None] = []
        for position, x in enumerate(frame.outputs):
            shape = [known[i] for i in x.shape]
            native.add_array(x.dtype, shape, writes=True)
            fixed = tuple([n for n in shape if type(n) is int])
            whole = len(fixed) == len(shape)
            self.allocators.append(program.memory.allocator(position, fixed, x.dtype) if whole else None)
        emitter = Emitter(native, count, program.address)
        with batch():
            emitter.program(frame, layout, range(len(native.frame)))
        self.calls, self.observed, self._addresses = emitter.calls, emitter.observed, emitter.addresses
        self._acts = any(call.source.startswith(MARK) for call in frame.all_calls())
        self._acts |= any(isinstance(of, Act) for of, _ in self._addresses)

    def at(
        self, numbers: Sequence[int], arena: np.ndarray, base: int, keep: Callable[[int], np.ndarray]
    ) -> tuple[ProgramPlan, Host | None]:
        """The instructions for given sizes, and what makes their calls to Python, if there are any.

        Parameters
        ----------
        arena, base : memory for temporaries, and where in it they begin.
        keep : ``keep(nbytes)`` is memory for what the plan keeps.
        """
        host = Host() if self._acts else None
        cells = np.zeros(len(self._addresses), np.int64)
        address, addresses, kept = cells.__array_interface__["data"][0], list[int](), list[np.ndarray]()
        for k, (of, number) in enumerate(self._addresses):
            if of is None:
                kept.append(keep(numbers[number]))
                addresses.append(kept[-1].__array_interface__["data"][0])
            elif isinstance(of, Act):
                assert host is not None
                addresses.append(host.callback(of, numbers[number:]))
            else:
                write_number(cells[k : k + 1], of, numbers[number])
                addresses.append(address + 8 * k)
        native = self.native.at([*numbers, *addresses], base)
        native.keep += [arena, cells, host, kept]
        return native, host
