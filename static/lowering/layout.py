"""Where the temporaries of a program lie, those of its regions inside blocks of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from common.dim import Atom
from static.lowering.arena import ALIGNMENT, place
from static.lowering.constructs import Loop
from static.running.shares import Ranges, shared_loops

if TYPE_CHECKING:
    from static.lowering.frame import Call
    from static.running.executable import Executable


@dataclass(slots=True)
class Block:
    """Memory of one step with regions.

    Attributes
    ----------
    buffers : offsets of what the step itself needs.
    regions : per region its layout, and where that begins.
    total : bytes.
    """

    buffers: list[int]
    regions: dict[str, tuple[Layout, int]]
    total: int


@dataclass(slots=True)
class Layout:
    """A program for concrete sizes.

    Attributes
    ----------
    values : what the sizes of its frame are.
    offsets, nbytes : of its temporaries.
    scratch : which of them are scratch memory of one call.
    blocks : step -> memory of its regions.
    shared : step -> parts of its outermost loop, each of which has scratch memory of its own.
    total : bytes.
    """

    values: list[int]
    offsets: list[int]
    nbytes: list[int]
    scratch: list[bool]
    blocks: dict[int, Block]
    shared: dict[int, Ranges]
    total: int


def lay_out(program: Executable, env: Mapping[Atom, int], threads: int = 1) -> Layout:
    """The layout of a program and of its regions, when loops are shared among threads."""
    frame = program.frame
    values = frame.evaluate(env)
    blocks = {i: _block(call, values, env, threads) for i, call in enumerate(frame.calls) if call.regions}
    shared = shared_loops(frame, values, threads)
    lives = []
    for t in frame.temporaries:
        if t.block is not None:
            nbytes = blocks[t.block].total
        else:
            nbytes = values[t.size[0]] if t.columns is None else t.columns.nbytes(*(values[i] for i in t.size))
        if t.name == "scratch" and t.first == t.last and t.first in shared:
            nbytes = aligned(nbytes) * len(shared[t.first])
        lives.append((t.first, t.last, nbytes))
    offsets, total = place(lives)
    scratch = [t.name == "scratch" and t.first == t.last for t in frame.temporaries]
    return Layout(values, offsets, [size for _, _, size in lives], scratch, blocks, shared, total)


def aligned(nbytes: int) -> int:
    """Bytes up to the next place where memory may begin."""
    return -(-max(nbytes, 1) // ALIGNMENT) * ALIGNMENT


def _block(call: Call, values: Sequence[int], env: Mapping[Atom, int], threads: int) -> Block:
    """What is carried needs two buffers, the other of which is the result; regions run one after the other."""
    buffers, total = [], 0
    sizes = []
    if isinstance(call.construct, Loop):
        sizes = [values[size] for _, _, size in call.construct.carried] + [1]
    for size in sizes:
        buffers.append(total)
        total += aligned(size)
    regions, most = {}, 0
    for name, program in call.regions.items():
        layout = lay_out(program, env, threads)
        regions[name] = layout, total
        most = max(most, layout.total)
    return Block(buffers, regions, total + most)
