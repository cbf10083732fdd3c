"""A graph as a program: kernels that are generic in sizes, and which of them run in which order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

from common.compiler.loop_ir import Kernel
from common.core.lazy import cached_property
from common.core.sizes import Dim, hint
from common.kernels.arrays.coordinates import WrongIndex
from static.graph import Graph, Node
from static.graph.regions import LoopParts
from static.lowering.codegen.build import Built
from static.lowering.codegen.column_loops import column_loop
from static.lowering.codegen.scalar_blocks import BLOCK_ITERATIONS
from static.lowering.codegen.scalar_loops import ScalarLoop, element_loop, scalar_loop
from static.lowering.codegen.short_columns import is_short_batch
from static.lowering.codegen.short_rows import build_rows, longer
from static.lowering.fusion.library_kernels import known_columns
from static.lowering.fusion.order import order_groups
from static.lowering.fusion.size_only import size_only
from static.lowering.groups import Group, single
from static.lowering.indexing.checks_before_loops import made_before, take_checks, unvarying
from static.lowering.indexing.indexed_access import failing
from static.lowering.ir.control_steps import ITERATIONS
from static.lowering.ir.items import ArrayBuffer
from static.lowering.ir.kernel_memory import ColumnScratch, Scratch
from static.lowering.ir.options import CompileOptions
from static.lowering.ir.program_values import Work
from static.lowering.ir.step import Step
from static.lowering.legalise import legalise
from static.lowering.memory.buffer_reuse import reuse_memory
from static.lowering.memory.call_table import (
    GENERATED,
    Frame,
    TableArgument,
    TableEntry,
    Temporary,
    keep_apart,
    make_frame,
)
from static.lowering.threads.cut_loops import build_cut
from static.lowering.threads.side_by_side import side_by_side
from static.lowering.threads.work import may_be_large


class LoweredProgram:
    """A graph as kernels that are generic in sizes, and the frame that plans are made of.

    Attributes
    ----------
    groups : which nodes became one kernel, in the order in which they run.
    steps : the kernel calls.
    parallel : whether loops are cut for threads where they can be.
    carried : of the body of a loop, how many values it hands from one iteration to the next.
    runs : of a region of another program, how often that runs it, as far as is known.
    unvarying : of the body of a loop, which inputs are the same in all iterations.
    checks : those of the body that are made before the loop, see `static.lowering.indexing.checks_before_loops`.
    """

    def __init__(
        self,
        graph: Graph,
        options: CompileOptions,
        parallel: bool = False,
        carried: int = 0,
        runs: int | None = None,
        unvarying: Sequence[int] = (),
    ) -> None:
        self.graph, self.options, self.parallel = graph, options, parallel
        self.work: Work = legalise(graph, parallel)
        self.work.carried = list(zip(self.work.inputs, [b for b, _ in self.work.outputs], strict=False))[:carried]
        if options.fuse and options.share_memory and runs is None:
            self.work.kept = size_only(self.work)
        self._regions: dict[int, dict[str, LoweredProgram]] = {}
        groups = _fused(self.work, parallel) if options.fuse else [single(item) for item in self.work.items]
        self.work.kept = size_only(self.work, groups) if self.work.kept else set()
        self.groups = order_groups(self.work, groups)
        self.runs = runs or 1
        for group in self.groups:
            group.runs = self.runs
        kept = [group for group in self.groups if group.id in self.work.kept]
        self.escaping = _escaping(self.work, self.groups)
        self.reused = (
            reuse_memory(self.work, self.groups, self.escaping) if options.fuse and options.share_memory else {}
        )
        first, steps = (list(self._steps(groups)) for groups in (kept, self.groups[len(kept) :]))
        self.checks, steps = take_checks(steps, [self.work.inputs[i] for i in unvarying])
        self.steps = [*first, *(side_by_side(steps) if self.parallel else steps)]
        self.frame = make_frame(self.work, self.graph, self.steps, len(first))
        if not options.share_memory:
            keep_apart(self.frame)

    def _steps(self, groups: Sequence[Group]) -> Iterator[Step]:
        """The kernel calls of groups in turn."""
        for group in groups:
            ready = self._ready(group)
            if isinstance(ready, list):
                yield from ready
            else:
                yield _built_step(ready, group)

    def _ready(self, group: Group) -> list[Step] | Built:
        """The calls of ready-made kernels, or a kernel to generate."""
        if group.native:
            return self._own_steps(group) if group.items[0].own else _native_steps(group)
        if self.parallel and may_be_large(group):
            cut, folds = build_cut(group, self.escaping)
            if not folds:
                return cut
            folded = (_step(fold.kernel, fold.things, fold.ints, [group], fold.cut) for fold in folds)
            return [_built_step(cut, group), *folded]
        known = known_columns(group, self.escaping)
        if known is None or is_short_batch(group, self.escaping):
            return build_rows(group, self.escaping)
        return [Step(*known, [group], {0: ("", group.items[0].node.id)})]

    def _own_steps(self, group: Group) -> list[Step]:
        """A step that is no kernel call: control flow, or an act; before it the checks of what all iterations read."""
        (item,) = group.items
        if item.id not in self._regions:
            self._regions[item.id] = self._lowered_regions(item.node)
        things: list[ArrayBuffer | Scratch] = [*item.inputs, *item.results]
        if item.node.regions:
            things.append(Scratch(item.dtype, None))
        regions = self._regions[item.id]
        step = Step(item.node.name, "", things, [], [group], {}, regions)
        return [*(made_before(check, item) for check in regions["body"].checks), step] if "body" in regions else [step]

    def _lowered_regions(self, node: Node) -> dict[str, LoweredProgram]:
        """The regions of control flow by name; of a loop over numbers one that runs many iterations."""
        is_loop = node.name == "loop"
        if is_loop and self.options.fuse:
            columns = None if self.parallel else column_loop  # threads divide columns
            for make in filter(None, (scalar_loop, columns, element_loop)):
                if (whole := make(node)) is not None:
                    return {ITERATIONS: _Iterations(node, whole, self)}
        carried = LoopParts(node).n if is_loop else 0
        counted = is_loop and LoopParts(node).condition is None
        runs = self.runs * max(1, hint(node.attrs["length"]) if counted else 1)
        same = unvarying(node) if is_loop and self.options.fuse else ()
        return {
            name: LoweredProgram(
                region, self.options, self.parallel, *((carried, runs, same) if name == "body" else (0, runs))
            )
            for name, region in node.regions
        }

    @cached_property
    def cut(self) -> LoweredProgram:
        """The same program with loops cut for several threads where that can be done."""
        return LoweredProgram(self.graph, self.options, parallel=True)

    @property
    def source(self) -> str:
        """Every kernel's source, once, and the order in which kernels run."""
        users: dict[str, list[Step]] = {}
        for step in self.all_steps():
            if step.source:
                users.setdefault(step.source, []).append(step)
        parts = []
        for source, steps in users.items():
            nodes = [f"# {describe(group)}" for step in steps for group in step.groups]
            parts.append("\n".join([*dict.fromkeys(nodes), source]))
        return "\n".join([*parts, *(f"# {line}" for line in self.call_lines())]) + "\n"

    def all_steps(self) -> Iterator[Step]:
        """The kernel calls, those of regions included."""
        for step in self.steps:
            yield step
            for region in step.regions.values():
                yield from region.all_steps()

    def call_lines(self) -> list[str]:
        """The kernel calls in order, as text."""
        lines = []
        for step in self.steps:
            lines.append(self.call_text(step))
            for name, region in step.regions.items():
                lines += [f"  {name}:", *(f"    {line}" for line in region.call_lines())]
        return lines

    def call_text(self, step: Step) -> str:
        """One kernel call as text, ``k(x, w) -> t3``; a pass over equal groups as ``k(...) -> ...; (...) -> ...``."""
        texts = []
        things = [b for b in step.things if isinstance(b, ArrayBuffer)]
        width = len(things) // len(step.groups)
        for i, group in enumerate(step.groups):
            made = {b.id for item in group.items for b in item.results}
            made -= {b.storage.id for b in group.reads}
            reads = [_buffer_name(b) for b in things[i * width : (i + 1) * width] if b.id not in made]
            outs = [_buffer_name(b.storage) for item in group.items for b in item.results if b.id in self.escaping]
            texts.append(f"({', '.join(reads)})" + f" -> {', '.join(outs)}" * bool(outs))
        return step.name + "; ".join(texts)


class _Iterations(LoweredProgram):
    """A loop as a program of one kernel."""

    def __init__(self, node: Node, loop: ScalarLoop, around: LoweredProgram) -> None:
        self.graph, self.options, self.parallel = LoopParts(node).body, around.options, around.parallel
        self.groups, self.reused = [loop.group], {}
        self.escaping = {buffer.id for buffer in loop.results}
        step = _step(loop.kernel, [*loop.group.reads, *loop.results], loop.ints, self.groups)
        self.steps, self.frame = [step], Frame()
        sized = [(dtype, self.frame.shape(shape)) for dtype, shape in loop.arguments]
        self.frame.inputs = [TableArgument(dtype, shape, written=True) for dtype, shape in sized]
        ints = [self.frame.size(n) for n in loop.ints]
        self.frame.temporaries = [
            Temporary("scratch", 0, 0, (self.frame.size(BLOCK_ITERATIONS * dtype.itemsize),)) for dtype in loop.scratch
        ]
        slots = [*range(len(sized) + len(loop.scratch))]
        first = {ints[argument]: number for argument, number in step.first.items()}
        self.frame.calls = [TableEntry(step.name, step.source, slots, ints, {0: ("", node.id)}, first=first)]


def describe(group: Group) -> str:
    """A group's nodes and the user's lines."""
    names = [item.name for item in group.items]
    shown = ", ".join(names[:12]) + (f", ... {len(names) - 12} more" if len(names) > 12 else "")
    return f"{shown}  [{', '.join(group.lines[:4])}]"


def _fused(work: Work, parallel: bool) -> list[Group]:
    from static.lowering.fusion.cheap_again import repeat_cheap
    from static.lowering.fusion.fuse import fuse_items
    from static.lowering.fusion.sums_of_blocks import begin_sums

    groups = repeat_cheap(work, fuse_items(work, parallel))
    return groups if parallel else begin_sums(work, groups)


def _escaping(work: Work, groups: list[Group]) -> set[int]:
    """Buffers that are read outside the group that makes them."""
    out = {buffer.id for buffer, _ in work.outputs} | {value.id for _, value in work.writes}
    out |= {b.id for group in groups for b in group.reads}
    return out | {b.id for g in groups for item in g.items for b in item.results if b.storage is not b}


def _step(
    kernel: Kernel, things: list[ArrayBuffer | Scratch], ints: list[Any], groups: list[Group], cut: str = ""
) -> Step:
    """The call of a generated kernel, named by its text."""
    name = f"{GENERATED}{hashlib.sha256(kernel.source('k').encode()).hexdigest()[:12]}"
    items = [item for group in groups for item in group.items]
    checked = failing(items)
    errors = {number: ("", item.node.id) for number, item in enumerate([items[0], *checked])}
    step = Step(name, kernel.source(name), things, ints, groups, errors, cut=cut, first=kernel.first)
    calls = (call for item in dict.fromkeys(checked) for call in item.calls)
    wrong = [call.errors for call in calls if isinstance(call.errors, WrongIndex)]
    if wrong:
        parts = [part for x in wrong for part in zip(x.extents, x.dims, x.wraps, strict=True)]
        step.wrong_index = WrongIndex(*zip(*parts, strict=True))
    return step


def _built_step(built: Built, group: Group) -> Step:
    """The call of a group's kernel."""
    step = _step(built.kernel, built.nest.bound, built.nest.ints, [group], built.cut)
    step.longer = longer(built)
    return step


def _native_steps(group: Group) -> list[Step]:
    (item,) = group.items
    buffers: list[ArrayBuffer | Scratch] = [*item.inputs, *item.results]
    steps = []
    for call in item.calls:
        things = buffers if call.buffers is None else [buffers[i] for i in call.buffers]
        if isinstance(call.scratch, (Dim, ColumnScratch)) or call.scratch:
            things = [*things, Scratch(item.dtype, call.scratch)]
        errors = {status: (text, item.node.id) for status, text in call.errors.items()}
        errors[0] = "", item.node.id
        step = Step(call.name, call.source, things, list(call.ints), [group], errors)
        step.wrong_index = call.errors if isinstance(call.errors, WrongIndex) else None
        steps.append(step)
    return steps


def _buffer_name(buffer: ArrayBuffer) -> str:
    if buffer.position is not None:
        return f"arg{buffer.position}"
    return f"t{buffer.id}"


__all__ = ["LoweredProgram", "describe"]
