"""Executables: a program's frame, and the state that its plans share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from common.compiler.compile import compile_kernel
from common.compiler.loop_ir import form_of, lengthened
from common.core.bounded import put_within
from common.core.far_sizes import measured
from common.core.lazy import cached_property
from common.core.locks import make_lock
from common.core.polynomials import Atom
from common.core.sizes import Dim
from common.kernels.arrays.gemm import of_matrices
from static.graph import Graph, Node
from static.lowering.ir.options import CompileOptions
from static.lowering.lowered_program import LoweredProgram
from static.lowering.memory.call_table import GENERATED, Frame
from static.lowering.memory.layout import MemoryLayout
from static.running.native_form import NativeForm
from static.running.overlaps import Overlaps
from static.running.plan import Plan
from static.running.result_memory import ResultMemory

if TYPE_CHECKING:
    from static.lowering.lowered_program import LoweredProgram

KEPT_FORMS = 16
"""Forms per program; where one thread runs, there is only one."""
GROWTH = 8
"""How many times larger a size is than that for which kernels were shaped, if they are shaped anew."""
MOST_GROWN = 2
"""How often kernels are shaped anew."""
MANY_BYTES = 1 << 18
"""Of a program's largest array: below it shapes of kernels matter less than calls."""

_growing = make_lock()


class Executable:
    """The running form of a program: its frame, and the parts that its plans share.

    Parameters
    ----------
    frame : what plans need of the program.
    options : how it is compiled.
    make : makes the graph that was lowered, which has the nodes that calls blame for errors, when somebody asks for it.
    notes : what was stored beside it.
    lowered : what the frame is of; None if it comes from the disk.

    Attributes
    ----------
    memory : what its plans share.
    known : see `static.tracing.optimised.Optimised`.
    overlaps : which inputs may not overlap.
    cutting : makes what runs on several threads: by default `cut`; `static.running.program_store` looks on the disk
        before.
    growing : makes what runs for larger sizes: by default `grown`; `static.running.program_store` as before.
    sizes : for which kernels were shaped; None for those of the traced call.
    parallel : whether its loops are cut for several threads.
    """

    def __init__(
        self,
        frame: Frame,
        options: CompileOptions,
        make: Callable[[], Graph],
        notes: Any = None,
        lowered: LoweredProgram | None = None,
    ) -> None:
        self.frame, self.options, self.make, self.notes = frame, options, make, notes
        self.memory, self.is_stored = ResultMemory(), lowered is None
        self.overlaps = Overlaps()
        self.known: Callable[[], AbstractContextManager[None]] = nullcontext
        self.cutting: Callable[[Executable], Executable] = Executable.cut
        self.growing: Callable[[Executable, Mapping[Atom, int]], Executable] = Executable.grown
        self.sizes: Mapping[Atom, int] | None = None
        self.parallel = False
        self._fitting: list[tuple[Mapping[Atom, int], Executable]] = []
        self._forms: dict[tuple[int, ...], NativeForm] = {}
        if lowered is not None:
            self.lowered = lowered

    @cached_property
    def graph(self) -> Graph:
        """The graph that was lowered."""
        return self.make()

    @cached_property
    def lowered(self) -> LoweredProgram:
        """The program with all that explains it; of one from the disk, made again."""
        from static.lowering.lowered_program import LoweredProgram

        graph = self.graph
        with self.known(), self._measured():
            return LoweredProgram(graph, self.options, self.parallel)

    def _measured(self) -> AbstractContextManager[None]:
        """A context in which hints are for the sizes for which kernels are shaped."""
        if self.sizes is None:
            return nullcontext()
        scope = next(n.scope for x in self.graph.inputs for n in x.shape if isinstance(n, Dim))
        return measured(scope, self.sizes)

    def cut(self) -> Executable:
        """The same program with loops cut for several threads where that can be done."""
        lowered = self.lowered
        with self.known(), self._measured():
            return executable_of(lowered.cut)

    def grown(self, env: Mapping[Atom, int]) -> Executable:
        """The same program with kernels shaped for larger sizes."""
        made = Executable(self.frame, self.options, self.make)
        made.graph, made.known, made.sizes = self.graph, self.known, env
        made.frame = made.lowered.frame
        return made

    def fitting(self, env: Mapping[Atom, int]) -> Executable:
        """The program whose kernels are shaped for sizes like these: another one if they have grown far."""
        self._fitting = self._fitting or [(env, self)]
        for sizes, program in self._fitting:
            if all(n <= GROWTH * sizes[atom] for atom, n in env.items() if atom[0] == "in"):
                return program
        if len(self._fitting) > MOST_GROWN or not self.options.fuse or self.frame.largest(env) < MANY_BYTES:
            return self._fitting[-1][1]
        with _growing:
            made = self.growing(self, env)
        made.overlaps, made.known, made.memory, made.sizes = self.overlaps, self.known, self.memory, env
        self._fitting.append((env, made))
        return made

    @cached_property
    def for_threads(self) -> Executable:
        """`cut`, or what is stored of it."""
        made = self.cutting(self)
        made.known, made.sizes, made.parallel = self.known, self.sizes, True
        return made

    def address(self, frame: Frame, step: int, layout: MemoryLayout) -> int:
        """The address of a call's kernel for these sizes, which is compiled, or loaded from the disk, at first use."""
        call, other = frame.calls[step], step in layout.others
        source = call.source if other else of_matrices(call.source)
        source = form_of(source, not other) if call.first else source
        source = lengthened(source, call.longer[0]) if call.longer and step in layout.longer else source
        return compile_kernel(source, call.name, self.options.compiler, not call.name.startswith(GENERATED))

    def form(self, layout: MemoryLayout, count: int, cuts: tuple[int, ...]) -> NativeForm:
        """The native form of plans whose loops are cut as `cuts` says.

        Parameters
        ----------
        layout, count : of one of them, and how many numbers that has, see `static.lowering.memory.layout.numbers`.
        """
        known = self._forms.get(cuts)
        return known or put_within(self._forms, cuts, NativeForm(self, layout, count), KEPT_FORMS)

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
        return Plan(self.fitting(env), env)

    def node(self, number: int) -> Node:
        """The node with an id, also one of a region."""
        return next(node for node in self.graph.all_nodes() if node.id == number)


def compile_graph(
    graph: Graph, fuse: bool = True, compiler: str | None = None, share_memory: bool = True
) -> Executable:
    """Lower a graph to kernels.

    Parameters
    ----------
    graph : after passes; its gradients are part of it.
    fuse : whether nodes share kernels; False gives one kernel per node, for debugging, and the same bits.
    compiler, share_memory : see `static.lowering.ir.options.CompileOptions`.

    Raises
    ------
    CompileError : a node that has no kernel; names the op and the user's line.
    """
    from static.lowering.lowered_program import LoweredProgram

    return executable_of(LoweredProgram(graph, CompileOptions(fuse, compiler, share_memory)))


def executable_of(lowered: LoweredProgram) -> Executable:
    """The running form of a program that has just been lowered."""
    graph = lowered.graph
    return Executable(lowered.frame, lowered.options, lambda: graph, lowered=lowered)
