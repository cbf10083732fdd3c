"""The places of a program's temporaries; regions have blocks of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from common.core.polynomials import Atom
from static.lowering.ir.control_steps import ITERATIONS, PROGRESS, LoopStep
from static.lowering.ir.kernel_memory import ColumnScratch
from static.lowering.memory.arena import Arena, aligned
from static.lowering.threads.sharing import Ranges, Sharing

if TYPE_CHECKING:
    from static.lowering.memory.call_table import Frame, TableEntry


@dataclass(slots=True)
class RegionMemory:
    """Memory of one step with regions.

    Attributes
    ----------
    buffers : offsets of what the step itself needs.
    regions : per region its layout, and where that begins.
    total : bytes.
    first : where its buffers are among the numbers of a plan, see `numbers`.
    """

    buffers: list[int]
    regions: dict[str, tuple[MemoryLayout, int]]
    total: int
    first: int = 0


@dataclass(slots=True)
class MemoryLayout:
    """A program for concrete sizes.

    Attributes
    ----------
    values : what the sizes of its frame are.
    offsets, nbytes : of its temporaries.
    blocks : step -> memory of its regions.
    shared : step -> parts of its outermost loop, each of which has scratch memory of its own.
    beside : steps that threads run at the same time, by the first of them.
    others : steps that need the other kernel of two: products of a vector, and those whose kernel begins with a form
        for other sizes.
    longer : steps whose loops are longer than in the traced call, and worth more code.
    total : bytes.
    kept : temporaries that the plan keeps, in memory of its own: nothing of them lies in the arena.
    first, parts : where its sizes, and the parts of each shared step, are among the numbers of a plan, see `numbers`.
    """

    values: list[int]
    offsets: list[int]
    nbytes: list[int]
    blocks: dict[int, RegionMemory]
    shared: dict[int, Ranges]
    beside: dict[int, list[int]]
    others: list[int]
    longer: list[int]
    total: int
    kept: list[int] = field(default_factory=list)
    first: int = 0
    parts: dict[int, int] = field(default_factory=dict)


class Schedule:
    """The part of a layout that does not depend on sizes.

    Attributes
    ----------
    sharing : how threads share its calls.
    sizes : of which size the bytes of each temporary are; None for memory of regions, which a block tells.
    columns : accumulators, their sizes, and the temporaries that are such, each kind once.
    blocks : steps with regions, and the temporaries that are memory for these.
    scratch : step -> temporaries that are scratch memory of it alone.
    products : steps that are products of matrices, and of which size their rows and columns are.
    forms : steps whose kernels begin with a form for certain sizes, and these.
    longer : steps whose kernels have more code for longer loops, and how large which sizes are then.
    kept : temporaries that later calls of a plan find.
    """

    def __init__(self, frame: Frame) -> None:
        spans: dict[int, tuple[int, int]] = {}  # steps side by side need all memory of theirs at the same time
        for i, call in enumerate(frame.calls):
            if call.beside:
                first = spans[i - 1][0] if i and frame.calls[i - 1].beside == call.beside else i
                spans.update((k, (first, i)) for k in range(first, i + 1))
        lives = ((spans.get(t.first, (t.first,))[0], spans.get(t.last, (t.last,))[-1]) for t in frame.temporaries)
        self.arena, self.sharing = Arena(list(lives)), Sharing(frame)
        self.sizes = [t.size[0] if t.size else None for t in frame.temporaries]
        self.columns: dict[Any, tuple[ColumnScratch, tuple[int, ...], list[int]]] = {}
        self.kept = [i for i, t in enumerate(frame.temporaries) if t.first < frame.kept <= t.last]
        self.blocks = [(t.block, i) for i, t in enumerate(frame.temporaries) if t.block is not None]
        self.products = [(i, *call.ints[1:3]) for i, call in enumerate(frame.calls) if call.is_product]
        self.forms = [(i, list(call.first.items())) for i, call in enumerate(frame.calls) if call.first]
        self.longer = [(i, call.longer[1]) for i, call in enumerate(frame.calls) if call.longer]
        self.scratch: dict[int, list[int]] = {}
        for i, t in enumerate(frame.temporaries):
            if t.name == "scratch" and t.first == t.last:
                self.scratch.setdefault(t.first, []).append(i)
            if t.columns is not None:
                key = t.columns.itemsize, t.columns.tile, t.columns.more, t.size
                self.columns.setdefault(key, (t.columns, t.size, []))[2].append(i)


def schedule_of(frame: Frame) -> Schedule:
    """The schedule of a frame, which is made once."""
    if frame.schedule is None:
        frame.schedule = Schedule(frame)
    schedule: Schedule = frame.schedule
    return schedule


def lay_out(frame: Frame, env: Mapping[Atom, int] | None, threads: int = 1, kept_bytes: int = 0) -> MemoryLayout:
    """The layout of a program and of its regions, when loops are shared among threads.

    Parameters
    ----------
    env : sizes; None for those of the traced call, if the program has just been lowered.
    kept_bytes : what the plan may keep at most.
    """
    schedule = schedule_of(frame)
    values = frame.evaluate(env)
    nbytes = [0 if size is None else values[size] for size in schedule.sizes]
    for columns, size, places in schedule.columns.values():
        needed = columns.nbytes(*[values[i] for i in size])
        for i in places:
            nbytes[i] = needed
    blocks = {}
    for step, i in schedule.blocks:
        blocks[step] = _block(frame.calls[step], values, env, threads)
        nbytes[i] = blocks[step].total
    shared = schedule.sharing.loops(values, threads) if threads > 1 else {}
    for step, parts in shared.items():
        for i in schedule.scratch.get(step, ()):
            nbytes[i] = aligned(nbytes[i]) * len(parts)
    beside = schedule.sharing.beside(values, threads, shared) if threads > 1 else {}
    kept = schedule.kept if sum(nbytes[i] for i in schedule.kept) <= kept_bytes else []
    for i in kept:
        nbytes[i] = 0
    known = {size: aligned(size) for size in set(nbytes)}
    offsets, total = schedule.arena.place([known[size] for size in nbytes])
    others = [step for step, m, n in schedule.products if 1 in (values[m], values[n])]
    others += [step for step, first in schedule.forms if any(values[i] != number for i, number in first)]
    longer = [step for step, sizes in schedule.longer if all(values[i] >= least for i, least in sizes)]
    return MemoryLayout(values, offsets, nbytes, blocks, shared, beside, others, longer, total, kept)


def _block(call: TableEntry, values: Sequence[int], env: Mapping[Atom, int] | None, threads: int) -> RegionMemory:
    """Regions run one after the other."""
    buffers, total = [], 0
    for size in buffer_sizes(call, values):
        buffers.append(total)
        total += aligned(size)
    regions, most = {}, 0
    for name, region in call.regions.items():
        layout = lay_out(region, env, threads)
        regions[name] = layout, total
        most = max(most, layout.total)
    return RegionMemory(buffers, regions, total + most)


def buffer_sizes(call: TableEntry, values: Sequence[int]) -> list[int]:
    """Bytes of what a step with regions needs itself, given the sizes of its frame.

    What is carried needs two buffers, one of which is the result, or only that; a loop that asks needs its answer. A
    loop that is one kernel needs its progress only.
    """
    if not isinstance(call.construct, LoopStep):
        return []
    if ITERATIONS in call.regions:
        return [8] * len(PROGRESS)
    carried = zip(call.construct.carried, call.regions["body"].outputs)
    return [values[size] if result.over is None else 0 for (_, _, size), result in carried] + [1]


def numbers(frame: Frame, layout: MemoryLayout) -> tuple[list[int], list[int]]:
    """All that depends on sizes in the instructions of a program, and what decides on the instructions themselves.

    Per program: sizes, then offsets of temporaries in the whole memory; of each shared step the parts: begin, end, and
    offsets of their scratch memory; of each block the offsets of its buffers, then the same of its regions. Where
    these begin is noted in the layout. Decisive are the number of parts of loops, which steps run side by side and in
    which order, which need the other kernel of two or one for longer loops, and whether something is kept.
    """
    found: list[int] = []
    cuts: list[int] = []
    _number(frame, layout, 0, found, cuts)
    return found, cuts


def _number(frame: Frame, layout: MemoryLayout, base: int, found: list[int], cuts: list[int]) -> None:
    schedule = schedule_of(frame)
    layout.first = len(found)
    found += layout.values
    found += [base + offset for offset in layout.offsets]
    cuts += [-1] * bool(layout.kept)
    for steps in layout.beside.values():
        cuts += (layout.first, -len(steps), *steps)
    for step in layout.others:
        cuts += (layout.first, step, 0)
    for step in layout.longer:
        cuts += (layout.first, step, -1)
    for step, parts in layout.shared.items():
        layout.parts[step] = len(found)
        cuts += (layout.first, step, len(parts))
        scratch = schedule.scratch.get(step, ())
        for k, part in enumerate(parts):
            found += part
            found += [base + layout.offsets[i] + k * (layout.nbytes[i] // len(parts)) for i in scratch]
    for step, i in schedule.blocks:
        block, at = layout.blocks[step], base + layout.offsets[i]
        block.first = len(found)
        found += [at + offset for offset in block.buffers]
        for name, (region, start) in block.regions.items():
            _number(frame.calls[step].regions[name], region, at + start, found, cuts)
