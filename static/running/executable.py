"""What runs of a program: its frame, and what the plans of it share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from common.kernels.gemm import of_matrices
from common.lazy import cached_property
from common.native.compile import compile_kernel
from common.native.pool import get_num_threads
from common.polynomials import Atom
from static.graph import Graph, Node
from static.lowering.frame import Call, Frame
from static.lowering.layout import Layout, Schedule
from static.lowering.options import Options
from static.running import shares
from static.running.form import Form
from static.running.outputs import Memory
from static.running.plan import Plan

if TYPE_CHECKING:
    from static.lowering.program import Program
    from static.running.store import Key

KEPT_FORMS = 16
"""Forms per program; where one thread runs, there is only one."""


class Executable:
    """A program as far as plans need it; a `static.lowering.program.Program` also knows how it came about.

    Attributes
    ----------
    options : how it is compiled.
    memory : what its plans share.
    graph : what was lowered; has the nodes that its calls blame for errors.
    key : under which it is stored, if it is.
    known : see `static.tracing.optimised.Optimised`.
    """

    frame: Frame
    graph: Graph

    def __init__(self, options: Options) -> None:
        self.options, self.memory = options, Memory()
        self.key: Key | None = None
        self.known: Callable[[], AbstractContextManager[None]] = nullcontext
        self._forms: dict[tuple[int, ...], Form] = {}

    @cached_property
    def cut(self) -> Program:
        """The same program with loops cut for several threads where that can be done."""
        from static.lowering.program import Program

        with self.known():
            return Program(self.graph, self.options, parallel=True)

    @cached_property
    def for_threads(self) -> Executable:
        """`cut`, or what is stored of it."""
        from static.running import store

        if self.key is None:
            return self.cut
        key = self.key.part(f"for threads, with more than {shares.SMALL_ELEMENTS} elements")
        found = store.load(key, self.options, self.make())
        if found is not None:
            return found
        store.save(key, self.cut)
        return self.cut

    def make(self) -> Callable[[], Graph]:
        """What gives the graph, and does not refer to this."""
        graph = self.graph
        return lambda: graph

    def address(self, step: int, layout: Layout) -> int:
        """The address of a call's kernel for these sizes, which is compiled, or loaded from the disk, at first use."""
        call = self.frame.calls[step]
        source = call.source if step in layout.vectors else of_matrices(call.source)
        return compile_kernel(source, call.name, self.options.compiler)

    @cached_property
    def schedule(self) -> Schedule:
        """What of its layouts does not depend on sizes."""
        return Schedule(self.frame)

    def form(self, layout: Layout, count: int, cuts: tuple[int, ...]) -> Form:
        """The native form of plans whose loops are cut as `cuts` says.

        Parameters
        ----------
        layout, count : of one of them, and how many numbers that has, see `static.lowering.layout.numbers`.
        """
        if cuts not in self._forms:
            while len(self._forms) >= KEPT_FORMS:
                self._forms.pop(next(iter(self._forms)), None)
            self._forms[cuts] = Form(self, layout, count)
        return self._forms[cuts]

    def load(self, before: Callable[[], None]) -> None:
        """Compile all kernels that a plan needs now, or load them from the disk; `before` is called before each."""
        for call in (self.for_threads if get_num_threads() > 1 else self).all_calls():
            if call.source:
                before()
                compile_kernel(of_matrices(call.source), call.name, self.options.compiler)

    def all_calls(self) -> Iterator[Call]:
        """The calls of the frame, those of regions included."""
        for call in self.frame.calls:
            yield call
            for region in call.regions.values():
                yield from region.all_calls()

    @cached_property
    def outlasts(self) -> frozenset[int]:
        """The outputs to which nothing is written before the last call that may fail."""
        calls = self.frame.calls
        last = max((i for i, call in enumerate(calls) if call.may_fail), default=-1)
        early = {slot for call in calls[: last + 1] for slot in call.slots}
        first = len(self.frame.inputs)
        return frozenset(i for i in range(len(self.frame.outputs)) if first + i not in early)

    def plan(self, env: Mapping[Atom, int]) -> Plan:
        """The program for concrete sizes; compiles nothing that another plan of it has compiled.

        Parameters
        ----------
        env : size of every dimension of every input that a Dim names.
        """
        return Plan(self, env)

    def node(self, number: int) -> Node:
        """The node with an id, also one of a region."""
        return next(node for node in self.graph.all_nodes() if node.id == number)


class Stored(Executable):
    """A program from the disk.

    Parameters
    ----------
    frame : what plans need of it.
    make : makes the graph that was lowered, when somebody asks for it.
    notes : what was stored beside it.
    """

    def __init__(self, frame: Frame, options: Options, make: Callable[[], Graph], notes: Any = None) -> None:
        super().__init__(options)
        self.frame, self._make, self.notes = frame, make, notes

    @cached_property
    def graph(self) -> Graph:
        """What was lowered."""
        return self._make()

    def make(self) -> Callable[[], Graph]:
        """What gives the graph."""
        return self._make
