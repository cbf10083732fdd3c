"""A graph as a compiled program: kernels that are generic in sizes, and plans for concrete sizes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from common.dim import Atom, Dim
from common.kernels import sums
from common.native.compile import compile_kernel
from common.spec import numel
from static.graph import Graph
from static.lowering.build import build
from static.lowering.frame import Frame, make_frame
from static.lowering.groups import Group, single
from static.lowering.items import Access, Buffer
from static.lowering.legalise import legalise
from static.lowering.memory import ColumnScratch, Scratch
from static.lowering.order import order_groups
from static.lowering.values import Work
from static.plan import Plan

SHOWN_REASONS = 6


@dataclass(eq=False, slots=True)
class Step:
    """One kernel call of a program.

    Attributes
    ----------
    name, source : of the kernel.
    things : what its slots are.
    ints : its arguments, ints or Dims.
    group : what it computes.
    errors : status -> message.
    """

    name: str
    source: str
    things: list[Buffer | Scratch]
    ints: list[Any]
    group: Group
    errors: Mapping[int, str]


def compile_graph(graph: Graph, *, fuse: bool = True) -> Program:
    """Lower a graph to kernels.

    Parameters
    ----------
    graph : after passes; its gradients are part of it.
    fuse : whether nodes share kernels; False gives one kernel per node, for debugging, and the same bits.

    Raises
    ------
    CompileError : a node that has no kernel; names the op and the user's line.
    """
    return Program(graph, fuse)


class Program:
    """The compiled form of a graph.

    Attributes
    ----------
    groups : which nodes became one kernel, in the order in which they run.
    steps : the kernel calls.
    """

    def __init__(self, graph: Graph, fuse: bool) -> None:
        self.graph = graph
        self.work: Work = legalise(graph)
        groups = _fused(self.work) if fuse else [single(item) for item in self.work.items]
        self.groups = order_groups(self.work, groups)
        self.escaping = _escaping(self.work, self.groups)
        self.steps = [step for group in self.groups for step in self._steps(group)]
        self.frame: Frame = make_frame(self.work, [(step.things, step.ints) for step in self.steps])

    def _steps(self, group: Group) -> list[Step]:
        if group.native:
            return _native_steps(group)
        lone = _lone_column_sum(group)
        if lone is not None:
            return [lone]
        built = build(group, self.escaping)
        digest = hashlib.sha256(built.kernel.source("k").encode()).hexdigest()[:12]
        name = f"k_{digest}"
        errors = {status: text for item in group.items for call in item.calls for status, text in call.errors.items()}
        return [Step(name, built.kernel.source(name), built.nest.bound, built.nest.ints, group, errors)]

    @cached_property
    def addresses(self) -> list[int]:
        """The address of each step's kernel; compiles, or loads from the disk cache, at first use."""
        return [compile_kernel(step.source, step.name) for step in self.steps]

    def plan(self, env: Mapping[Atom, int]) -> Plan:
        """The program for concrete sizes; compiles nothing that another plan of it has compiled.

        Parameters
        ----------
        env : size of every dimension of every input that a Dim names.
        """
        return Plan(self, env)

    @property
    def source(self) -> str:
        """Every kernel's source, once, and the order in which kernels run."""
        users: dict[str, list[Step]] = {}
        for step in self.steps:
            users.setdefault(step.source, []).append(step)
        parts = []
        for source, steps in users.items():
            nodes = [f"# {describe(step.group)}" for step in steps]
            parts.append("\n".join([*dict.fromkeys(nodes), source]))
        parts.append("\n".join(f"# {self.call_text(step)}" for step in self.steps))
        return "\n".join(parts) + "\n"

    def call_text(self, step: Step) -> str:
        """One kernel call as text, ``k(x, w) -> t3``."""
        made = {b.id for item in step.group.items for b in item.results}
        reads = [_buffer_name(b) for b in step.things if isinstance(b, Buffer) and b.id not in made]
        outs = [_buffer_name(b.storage) for item in step.group.items for b in item.results if b.id in self.escaping]
        return f"{step.name}({', '.join(reads)}) -> {', '.join(outs)}"

    def explain_lines(self) -> list[str]:
        """What became one kernel, and why other nodes did not join."""
        distinct = len({step.source for step in self.steps})
        lines = [f"{len(self.groups)} kernels for {len(self.work.items)} operations, {distinct} distinct"]
        for group in self.groups:
            lines.append(f"  {describe(group)}")
            refused = [
                f"    not with {there.node.name} (%{there.node.id}) for {here.node.name}: {reason}"
                for here, there, reason in group.why_not
            ]
            lines += list(dict.fromkeys(refused))[:SHOWN_REASONS]
        return lines


def describe(group: Group) -> str:
    """A group's nodes and the user's lines."""
    names = [item.node.name for item in group.items]
    shown = ", ".join(names[:12]) + (f", ... {len(names) - 12} more" if len(names) > 12 else "")
    return f"{shown}  [{', '.join(group.lines[:4])}]"


def _fused(work: Work) -> list[Group]:
    from static.fuse import fuse_items

    return fuse_items(work)


def _escaping(work: Work, groups: list[Group]) -> set[int]:
    """Buffers that are read outside the group that makes them."""
    out = {buffer.id for buffer, _ in work.outputs} | {value.id for _, value in work.writes}
    out |= {b.id for group in groups for b in group.reads}
    return out | {b.id for g in groups for item in g.items for b in item.results if b.storage is not b}


def _native_steps(group: Group) -> list[Step]:
    (item,) = group.items
    buffers: list[Buffer | Scratch] = [*item.inputs, *item.results]
    steps = []
    for call in item.calls:
        things = buffers if call.buffers is None else [buffers[i] for i in call.buffers]
        if isinstance(call.scratch, (Dim, ColumnScratch)) or call.scratch:
            things = [*things, Scratch(item.dtype, call.scratch)]
        steps.append(Step(call.name, call.source, things, list(call.ints), group, call.errors))
    return steps


def _lone_column_sum(group: Group) -> Step | None:
    """Sums or products of columns of a whole array alone: the hand-written kernel takes several rows at a time."""
    item = group.items[0]
    source = item.operands[0].source if len(group.items) == 1 and item.kind == "cols" else None
    if not isinstance(source, Access) or item.function not in ("sum", "prod") or source.buffer.dtype != item.dtype:
        return None
    if source.prefix != len(item.dims):
        return None
    rows, columns = numel(item.dims[: item.split]), numel(item.dims[item.split :])
    scratch = Scratch(item.dtype, ColumnScratch(rows, columns, item.dtype.itemsize, sums.TILE))
    things: list[Buffer | Scratch] = [source.buffer, item.out, scratch]
    name = f"{item.function}_cols"
    return Step(name, getattr(sums, f"{name}_source")(item.dtype), things, [1, rows, columns], group, {})


def _buffer_name(buffer: Buffer) -> str:
    if buffer.position is not None:
        return f"arg{buffer.position}"
    return f"t{buffer.id}"


__all__ = ["Program", "Step", "compile_graph"]
