"""Bytes and operations of a plan's kernels, and the places of its temporaries: counted, not measured."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from common.compiler.compile import Origin, origin
from common.compiler.loop_ir import form_of, lengthened
from common.core.sizes import resolve
from common.kernels.arrays.gemm import of_matrices
from static.graph.regions import iterations
from static.lowering.groups import Group
from static.lowering.ir.items import Access, ArrayBuffer, Item, is_literal

if TYPE_CHECKING:
    from static.graph import Node
    from static.lowering.ir.step import Step
    from static.lowering.lowered_program import LoweredProgram
    from static.lowering.memory.layout import MemoryLayout
    from static.running.plan import Plan


@dataclass(frozen=True, slots=True)
class KernelCost:
    """One kernel call of a plan.

    Attributes
    ----------
    name : of the kernel; equal names are the same machine code.
    ops : names of the nodes that it computes, in program order.
    lines : the user's lines they stem from, ``file:line``.
    reads, writes : bytes; an array that it reads several times counts once, memory of its own not at all.
    flops : one per element and op, whatever the op, 2 m n k for a product of matrices, as much for a convolution;
        copies, gathers and sorts count none.
    times : how often a call of the program runs it: in a loop as often as it iterates. None where data decide, in a
        branch or a loop with a condition; 0 for control flow itself, whose kernels follow, and for what is kept.
    kept : whether only the first call runs it, and the plan keeps what it makes.
    origin : where its machine code came from, and the seconds that took.
    equal : how many equal, independent groups of ops it computes in one pass.
    parts : into how many parts its outermost loop is cut, for several threads.
    beside : how many other kernel calls threads make at the same time.
    reused : which results lie in the memory of operands that end with them.
    refused : why neighbours are not part of it.
    """

    name: str
    ops: tuple[str, ...]
    lines: tuple[str, ...]
    reads: int
    writes: int
    flops: int
    times: int | None
    kept: bool
    origin: Origin | None
    equal: int
    parts: int
    beside: int
    reused: tuple[str, ...]
    refused: tuple[str, ...]

    def __str__(self) -> str:
        shown = ", ".join(self.ops[:12]) + (f", ... {len(self.ops) - 12} more" if len(self.ops) > 12 else "")
        counts = f"reads {amount(self.reads, 'B')}, writes {amount(self.writes, 'B')}, {amount(self.flops, 'flop')}"
        if self.equal > 1:
            shown += f" (one pass over {self.equal} equal groups)"
        if self.parts > 1:
            shown += f" (in {self.parts} parts)"
        if self.kept:
            shown += " (once, and kept)"
        if self.times not in (0, 1):
            shown += f" ({self.times} times)" if self.times else " (as often as data decide)"
        if self.beside:
            shown += f" (beside {self.beside} others)"
        return f"{self.name}: {shown}  [{', '.join(self.lines[:4])}]  {counts}"


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of the arena.

    Attributes
    ----------
    name : of the array, as in the list of kernel calls; "scratch" for memory of one kernel.
    offset, nbytes : where it lies.
    first, last : positions of the first and the last kernel call that uses it.
    """

    name: str
    offset: int
    nbytes: int
    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.offset:>10} + {self.nbytes:<10} {self.name} in kernel calls {self.first} to {self.last}"


def kernels(program: LoweredProgram, layout: MemoryLayout, env: Any) -> list[KernelCost]:
    """The kernel calls of a program, in the order in which they run; those of a loop or a branch after it, once each.

    Parameters
    ----------
    layout, env : those of a plan of it.
    """
    return [_kernel(*found, env) for found in _walk(program, layout, 1, env)]


def _walk(
    program: LoweredProgram, layout: MemoryLayout, times: int | None, env: Any
) -> Iterator[tuple[LoweredProgram, Step, int | None, tuple[int, int]]]:
    others = {i: len(steps) - 1 for steps in layout.beside.values() for i in steps}
    for i, step in enumerate(program.steps):
        shares = (len(layout.shared.get(i, [step])), others.get(i, 0))
        kept = i < program.frame.kept and bool(layout.kept)
        yield program, step, 0 if step.regions or kept else times, shares
        for name, region in step.regions.items():
            yield from _walk(region, layout.blocks[i].regions[name][0], _inside(step, times, env), env)


def _inside(step: Step, times: int | None, env: Any) -> int | None:
    """How often the regions of a step run, if the step runs so many times."""
    node = step.groups[0].items[0].node
    length = iterations(node)
    return None if times is None or length is None else times * resolve(length, env)


def arena(plan: Plan) -> list[Piece]:
    """The temporaries of a plan, by where they lie."""
    pieces = []
    layout = plan.layout
    places = zip(plan.program.frame.temporaries, layout.offsets, layout.nbytes, strict=True)
    for position, (life, offset, nbytes) in enumerate(places):
        if position in layout.kept:
            continue
        pieces.append(Piece(life.name, offset, nbytes, life.first, life.last))
    return sorted(pieces, key=lambda piece: (piece.offset, piece.first))


def amount(number: float, unit: str) -> str:
    """A number with a decimal prefix.

    Examples
    --------
    >>> amount(12_345, "B"), amount(3, "flop")
    ('12.3 kB', '3 flop')
    """
    for prefix in ("", "k", "M", "G"):
        if number < 1000:
            return f"{number:.3g} {prefix}{unit}"
        number /= 1000
    return f"{number:.3g} T{unit}"


def _kernel(program: LoweredProgram, step: Step, times: int | None, shares: tuple[int, int], env: Any) -> KernelCost:
    compiler = program.options.compiler
    counts = [_native_counts(step, env) if group.native else _counts(program, group, env) for group in step.groups]
    if step.regions:
        counts = [(0, 0, 0)]  # the kernels of its regions count what they read and write
    reads, writes, flops = (sum(column) for column in zip(*counts, strict=True))
    items = [item for group in step.groups for item in group.items]
    refused = (
        f"not with {there.node.name} (%{there.node.id}) for {here.node.name}: {reason}"
        for group in step.groups
        for here, there, reason in group.why_not
    )
    return KernelCost(
        step.name,
        tuple(item.name for item in items),
        tuple(dict.fromkeys(line for group in step.groups for line in group.lines)),
        reads,
        writes,
        flops,
        times,
        step in program.steps[: program.frame.kept] and times == 0,
        next(filter(None, (origin(source, compiler) for source in _compiled(step))), None),
        len(step.groups),
        *shares,
        tuple(
            f"{here.node.name} in the memory of {there.node.name} (%{there.node.id}), which ends here"
            for group in step.groups
            for there, here in program.reused.get(group.id, ())
        ),
        tuple(dict.fromkeys(refused)),
    )


def _compiled(step: Step) -> list[str]:
    """The texts that may have been compiled for a call, of which the first is for most sizes or those of the trace."""
    texts = [form_of(step.source, first) for first in (True, False)] if step.first else []
    texts = texts or [of_matrices(step.source), step.source]
    return texts if step.longer is None else [*texts, *(lengthened(text, step.longer[0]) for text in texts)]


def _counts(program: LoweredProgram, group: Group, env: Any) -> tuple[int, int, int]:
    """Bytes read, bytes written and operations of a generated kernel."""
    made = {buffer.id for item in group.items for buffer in item.results}
    writes = sum(_written(item, env) for item in group.items if item.out.id in program.escaping)
    flops = sum(_elements(item, env) for item in group.items if item.function not in ("", "take"))
    return sum(_read(group.items, made, env).values()), writes, flops


def _native_counts(step: Step, env: Any) -> tuple[int, int, int]:
    """The same of one call of a kernel op."""
    (group,) = step.groups
    made = {buffer.id for item in group.items for buffer in item.results}
    buffers = [thing for thing in step.things if isinstance(thing, ArrayBuffer)]
    if step.name == "copy":
        count = math.prod(resolve(step.ints[3 : 3 + step.ints[0]], env)) * buffers[0].dtype.itemsize
        return count, count, 0
    reads, writes = (sum(_nbytes(b, env) for b in buffers if (b.id in made) is out) for out in (False, True))
    if step.name == "expression_channels":
        return reads, writes, math.prod(resolve(n, env) for n in step.ints[:3])
    if step.name in ("gemm", "integer_products"):
        return reads, writes, 2 * math.prod(resolve(n, env) for n in step.ints[:4])
    return reads, writes, _convolved(group.items[0].node, env)


def _convolved(node: Node, env: Any) -> int:
    """Operations of a convolution, or of a gradient of one: two per element of the output, channel and weight.

    Records call a convolution's weight w and its output v; what no operand is, is the result. Other kernels count none.
    """
    op = node.op
    if op is None or not op.product or "groups" not in node.attrs:
        return 0
    shapes = {name: value.spec.shape for name, value in zip(op.inputs, node.values, strict=True)}
    (result,) = (value.spec.shape for value in node.outputs)
    sizes = (*shapes.get("v", result), *shapes.get("w", result)[1:])
    return 2 * math.prod(resolve(n, env) for n in sizes)


def _read(items: list[Item], made: set[int], env: Any) -> dict[int, int]:
    """Bytes per array that a group reads from memory: what is touched, at most the whole array."""
    bytes_of: dict[int, int] = {}
    for item in items:
        for access in item.accesses:
            buffer = access.buffer
            if buffer.id not in made and buffer.constant is None:
                touched = _touched(access, item, env) * buffer.dtype.itemsize
                bytes_of[buffer.id] = min(_nbytes(buffer, env), max(bytes_of.get(buffer.id, 0), touched))
    return bytes_of


def _touched(access: Access, item: Item, env: Any) -> int:
    sizes = zip(item.dims, access.strides, strict=True)
    whole = item.at is not None and access is item.operands[0].source  # a row of the table per index
    return math.prod(resolve(n, env) for n, stride in sizes if whole or not is_literal(stride, 0))


def _written(item: Item, env: Any) -> int:
    """Bytes of a result: of one that is written at indices what is touched, at most the whole array."""
    whole = _nbytes(item.out, env)
    return min(whole, _elements(item, env) * item.out.dtype.itemsize) if item.puts else whole


def _elements(item: Item, env: Any) -> int:
    return math.prod(resolve(n, env) for n in item.dims)


def _nbytes(buffer: ArrayBuffer, env: Any) -> int:
    return math.prod(resolve(n, env) for n in buffer.shape) * buffer.dtype.itemsize
