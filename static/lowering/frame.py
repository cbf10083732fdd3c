"""What every plan of a program has in common: which sizes it evaluates, which slots kernels use, what lives when.

Slots are numbered: arguments (inputs, then outputs), temporaries, constants. Only addresses and sizes differ
between plans, so a plan for new sizes costs microseconds per kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from common.dim import Atom, Dim, evaluate
from common.spec import numel
from static.lowering.items import Buffer, Sizes, size_key
from static.lowering.memory import ColumnScratch, Scratch
from static.lowering.values import Work


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
    sizes : every size that a plan evaluates, each once.
    inputs, outputs : per array the indices of its sizes.
    temporaries, constants : see the module's docstring.
    steps : per kernel call its slots and the indices of its int arguments.
    """

    sizes: list[Any] = field(default_factory=list)
    inputs: list[list[int]] = field(default_factory=list)
    outputs: list[list[int]] = field(default_factory=list)
    temporaries: list[Temporary] = field(default_factory=list)
    constants: list[tuple[Buffer, int]] = field(default_factory=list)
    steps: list[tuple[list[int], list[int]]] = field(default_factory=list)
    _index: dict[Any, int] = field(default_factory=dict)

    def size(self, value: Any) -> int:
        """The index of a size."""
        name = size_key(value)
        if name not in self._index:
            self._index[name] = len(self.sizes)
            self.sizes.append(value)
        return self._index[name]

    def shape(self, shape: Sizes) -> list[int]:
        """The indices of sizes."""
        return [self.size(n) for n in shape]

    def evaluate(self, env: Mapping[Atom, int]) -> list[int]:
        """All sizes for concrete dimensions."""
        return [evaluate(n.terms, env) if isinstance(n, Dim) else int(n) for n in self.sizes]


def make_frame(work: Work, calls: Sequence[tuple[Sequence[Buffer | Scratch], Sequence[Any]]]) -> Frame:
    """The frame of a program whose steps use the given buffers and int arguments."""
    frame = Frame()
    slots: dict[int, int] = {}
    for buffer in work.inputs:
        slots[id(buffer)] = len(slots)
        frame.inputs.append(frame.shape(buffer.shape))
    for buffer, shape in work.outputs:
        slots[id(buffer)] = len(slots)
        frame.outputs.append(frame.shape(shape))
    arguments = len(slots)
    owners = [[t.storage if isinstance(t, Buffer) else t for t in things] for things, _ in calls]
    lives: dict[int, Temporary] = {}
    constants: dict[int, Buffer] = {}
    for index, things in enumerate(owners):
        for thing in things:
            if id(thing) in slots and id(thing) not in lives:
                continue
            if isinstance(thing, Buffer) and thing.constant is not None:
                constants[id(thing)] = thing
            elif id(thing) in lives:
                lives[id(thing)].last = index
            else:
                lives[id(thing)] = _temporary(frame, thing, index)
    frame.temporaries = list(lives.values())
    frame.constants = [
        (buffer, frame.size(buffer.constant) if isinstance(buffer.constant, Dim) else -1)
        for buffer in constants.values()
    ]
    for position, name in enumerate([*lives, *constants]):
        slots[name] = arguments + position
    for things, (_, ints) in zip(owners, calls, strict=True):
        frame.steps.append(([slots[id(thing)] for thing in things], [frame.size(n) for n in ints]))
    return frame


def _temporary(frame: Frame, thing: Buffer | Scratch, index: int) -> Temporary:
    if isinstance(thing, Scratch) and thing.nbytes is None:
        return Temporary("regions", index, index, (), block=index)
    if isinstance(thing, Scratch) and isinstance(thing.nbytes, ColumnScratch):
        sizes = (frame.size(thing.nbytes.rows), frame.size(thing.nbytes.columns))
        return Temporary("scratch", index, index, sizes, thing.nbytes)
    nbytes = numel(thing.shape) * thing.dtype.itemsize if isinstance(thing, Buffer) else thing.nbytes
    name = f"t{thing.id}" if isinstance(thing, Buffer) else "scratch"
    return Temporary(name, index, index, (frame.size(nbytes),))
