"""The call table, from which plans are made: arguments, kernel calls, sizes to evaluate, lifetimes.

Slots are numbered: arguments (inputs, then outputs), temporaries, constants. Only addresses and sizes differ
between plans, so new sizes cost no planning per kernel. A frame refers to nothing that the program was
made of, so it can be stored (`static.running.program_store`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from common.core.polynomials import Atom, evaluate
from common.core.sizes import Dim, hint
from common.core.spec import numel
from common.kernels.arrays.coordinates import WrongIndex, position_of
from static.graph import Graph
from static.lowering.ir.control_steps import Construct, construct
from static.lowering.ir.items import ArrayBuffer, Sizes, size_key
from static.lowering.ir.kernel_memory import ColumnScratch, Scratch
from static.lowering.ir.program_values import Work
from static.lowering.ir.step import Step
from static.lowering.threads.work import picoseconds

ANY_INDEX = -1
"""Stands for every status of a kernel whose statuses name wrong indices."""


GENERATED = "k_"
"""How the names of kernels begin that are made for one program; all others are ready-made."""


@dataclass(slots=True)
class TableArgument:
    """An input or an output.

    Attributes
    ----------
    shape : the indices of its sizes.
    number : whether it is a Python number, not an array.
    written : whether the program writes to it.
    over : of an output, the input in whose memory it lies, if it does.
    """

    dtype: np.dtype[Any]
    shape: list[int]
    number: bool = False
    written: bool = False
    over: int | None = None


@dataclass(slots=True)
class TableEntry:
    """One kernel call, or control flow, or an act.

    Attributes
    ----------
    name, source : of the kernel; no source for control flow and acts.
    slots, ints : what its buffers are, and the indices of its int arguments.
    errors : status -> its message, and the id of the node whose line is to blame; that of other statuses under 0.
    wrong_index : the messages of statuses that stand for wrong indices, too many to be listed.
    cut : the variable of the loop whose bounds are the last two arguments, see `static.lowering.threads.cut_loops`.
    work : the index of the picoseconds that it takes, by a rough count, if it is cut or a product for threads.
    beside : not 0 if it does not depend on its neighbours with the same number, see
        `static.lowering.threads.side_by_side`.
    first : the numbers, by the indices of sizes, for which its kernel begins with a form: that alone is compiled while
        the sizes are these, and without it what follows, see `common.compiler.loop_ir.form_of`.
    longer : `common.compiler.loop_ir.Kernel.long` for plans of more elements than the traced call had, and how large
        which sizes are then at least, by their indices; None where that does not matter.
    construct : of control flow and acts; None for a kernel call.
    regions : of control flow, the frames of what it runs.
    """

    name: str
    source: str
    slots: list[int]
    ints: list[int]
    errors: Mapping[int, tuple[str, int]]
    wrong_index: WrongIndex | None = None
    cut: str = ""
    work: int = 0
    beside: int = 0
    first: Mapping[int, int] = field(default_factory=dict)
    longer: tuple[int, Sequence[tuple[int, int]]] | None = None
    construct: Construct | None = None
    regions: Mapping[str, Frame] = field(default_factory=dict)

    def message(self, status: int, env: Mapping[Atom, int]) -> tuple[str, int]:
        """The message of a status in a call with sizes `env`, and the id of the node to blame."""
        wrong = self.wrong_index
        if wrong is not None and status == ANY_INDEX:
            return wrong.any(env), self.errors[0][1]
        if wrong is not None and status:
            return wrong.told(status, env), self.errors[1 + position_of(status)][1]
        return self.errors.get(status) or (f"kernel status {status}", self.errors[0][1])

    @property
    def is_product(self) -> bool:
        """Whether it is a product of matrices: `ints` begin with batch, rows, columns and inner size."""
        return self.name == "gemm"

    @property
    def may_fail(self) -> bool:
        """Whether it can end the run; control flow and acts may."""
        return not self.source or len(self.errors) > 1


@dataclass(slots=True)
class Temporary:
    """Memory that a program needs between two of its steps.

    Attributes
    ----------
    name : "t" and the buffer's id, "scratch", or "regions".
    first, last : steps of the first and last use.
    size : index of the bytes, or of rows and columns of `columns`.
    block : the step whose regions it is for; their layout says how large it is.
    """

    name: str
    first: int
    last: int
    size: tuple[int, ...]
    columns: ColumnScratch | None = None
    block: int | None = None


@dataclass(slots=True)
class Frame:
    """The size-independent part of a plan.

    Attributes
    ----------
    sizes : every size that a plan evaluates, each once: an int or the terms of a Dim.
    hints : what they are in the traced call; not kept on the disk.
    temporaries : see the module's docstring.
    constants : dtype, and the number or the index of the size that it is; one of them is None.
    calls : in the order in which they run.
    kept : how many of the first calls depend on sizes only: plans keep what they make.
    schedule : what of its layouts does not depend on sizes, see `static.lowering.memory.layout.schedule_of`.
    """

    sizes: list[Any] = field(default_factory=list)
    inputs: list[TableArgument] = field(default_factory=list)
    outputs: list[TableArgument] = field(default_factory=list)
    temporaries: list[Temporary] = field(default_factory=list)
    constants: list[tuple[np.dtype[Any], Any, int | None]] = field(default_factory=list)
    calls: list[TableEntry] = field(default_factory=list)
    kept: int = 0
    hints: list[int] = field(default_factory=list)
    schedule: Any = None
    _index: dict[Any, int] = field(default_factory=dict)

    def all_calls(self) -> Iterator[TableEntry]:
        """The calls, those of regions included."""
        for call in self.calls:
            yield call
            for region in call.regions.values():
                yield from region.all_calls()

    def size(self, value: Any) -> int:
        """The index of a size."""
        name = size_key(value)
        if name not in self._index:
            self._index[name] = len(self.sizes)
            self.sizes.append(name)
            self.hints.append(hint(value))
        return self._index[name]

    def shape(self, shape: Sizes) -> list[int]:
        """The indices of sizes."""
        return [self.size(n) for n in shape]

    def evaluate(self, env: Mapping[Atom, int] | None) -> list[int]:
        """All sizes for concrete dimensions; for those of the traced call if there are none."""
        if env is None:
            return list(self.hints)
        return [n if type(n) is int else evaluate(n, env) for n in self.sizes]

    def largest(self, env: Mapping[Atom, int]) -> int:
        """The bytes of the largest argument, result or temporary."""
        known = self.evaluate(env)
        of_arguments = (x.dtype.itemsize * prod([known[i] for i in x.shape]) for x in (*self.inputs, *self.outputs))
        return max([*of_arguments, *(prod([known[i] for i in t.size]) for t in self.temporaries if not t.columns)])


def make_frame(work: Work, graph: Graph, steps: Sequence[Step], kept: int = 0) -> Frame:
    """The frame of a program, of which plans keep what its first `kept` steps make."""
    frame = Frame(kept=kept)
    slots: dict[int, int] = {}
    written = {state.id for state, _ in work.writes}
    for value, buffer in zip(graph.inputs, work.inputs, strict=True):
        slots[id(buffer)] = len(slots)
        number = value.spec.weak and buffer.dtype in (np.float64, np.int64)
        frame.inputs.append(TableArgument(buffer.dtype, frame.shape(buffer.shape), number, buffer.id in written))
    for buffer, shape in work.outputs:
        slots[id(buffer)] = len(slots)
        over = next((i for i, x in enumerate(work.inputs) if x is buffer.storage), None)
        frame.outputs.append(TableArgument(buffer.dtype, frame.shape(shape), written=True, over=over))
    arguments = len(slots)
    owners = [[t.storage if isinstance(t, ArrayBuffer) else t for t in step.things] for step in steps]
    lives: dict[int, Temporary] = {}
    constants: dict[int, ArrayBuffer] = {}
    for index, things in enumerate(owners):
        for thing in things:
            if id(thing) in slots and id(thing) not in lives:
                continue
            if isinstance(thing, ArrayBuffer) and thing.constant is not None:
                constants[id(thing)] = thing
            elif id(thing) in lives:
                lives[id(thing)].last = index
            else:
                lives[id(thing)] = _temporary(frame, thing, index)
    frame.temporaries = list(lives.values())
    for buffer in constants.values():
        value = buffer.constant
        size = frame.size(value) if isinstance(value, Dim) else None
        frame.constants.append((buffer.dtype, value if size is None else None, size))
    for position, name in enumerate([*lives, *constants]):
        slots[name] = arguments + position
    for things, step in zip(owners, steps, strict=True):
        own = [slots[id(thing)] for thing in things]
        ints = [frame.size(n) for n in step.ints]
        call = TableEntry(step.name, step.source, own, ints, step.errors, step.wrong_index)
        call.regions = {name: region.frame for name, region in step.regions.items()}
        call.first = {ints[argument]: number for argument, number in step.first.items()}
        if step.longer is not None:
            call.longer = step.longer[0], [(frame.size(n), least) for n, least in step.longer[1]]
        if not step.source:
            call.construct = construct(step.groups[0].items[0].node, frame.size)
        if step.cut or step.beside:
            call.cut, call.beside, call.work = step.cut, step.beside, frame.size(picoseconds(step.groups))
        frame.calls.append(call)
    return frame


def keep_apart(frame: Frame) -> None:
    """Let every temporary live from the first call to the last, so that none of them shares memory."""
    for temporary in frame.temporaries:
        if temporary.block is None and temporary.name != "scratch":
            temporary.first, temporary.last = 0, len(frame.calls) - 1


def _temporary(frame: Frame, thing: ArrayBuffer | Scratch, index: int) -> Temporary:
    if isinstance(thing, Scratch) and thing.nbytes is None:
        return Temporary("regions", index, index, (), block=index)
    if isinstance(thing, Scratch) and isinstance(thing.nbytes, ColumnScratch):
        sizes = (frame.size(thing.nbytes.rows), frame.size(thing.nbytes.columns))
        return Temporary("scratch", index, index, sizes, thing.nbytes)
    nbytes = numel(thing.shape) * thing.dtype.itemsize if isinstance(thing, ArrayBuffer) else thing.nbytes
    name = f"t{thing.id}" if isinstance(thing, ArrayBuffer) else "scratch"
    return Temporary(name, index, index, (frame.size(nbytes),))
