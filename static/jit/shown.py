"""A compiled function's views of itself: graph, source, LLVM text, report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.core.errors import TraceError
from static.running.plan import Plan

if TYPE_CHECKING:
    from static.jit.traced import CompiledTrace
    from static.lowering.lowered_program import LoweredProgram
    from static.reports.explain import Explanation


file_modules: list[Callable[[], Any]] = []
"""The function that gives the module for files of programs; `static.api` adds it, because it is above this one."""


def program_files() -> Any:
    """The module that writes and reads programs."""
    return file_modules[-1]()


class TraceReports:
    """The part of a `static.jit.function.CompiledFunction` that looks at its traces."""

    __name__: str
    traces: list[CompiledTrace]
    retraces: list[str]
    plans_made: int
    passes: Any
    _by_call: dict[Any, tuple[CompiledTrace, Any]]

    @property
    def newest(self) -> CompiledTrace:
        """The newest trace.

        Raises
        ------
        TraceError : the function has not been called yet.
        """
        if not self.traces:
            raise TraceError(f"{self.__name__} has not been traced yet: call it once")
        return self.traces[-1]

    @property
    def graph(self) -> Any:
        """The newest program as a networkx.DiGraph, see `static.graph.Graph.dag`."""
        return self.newest.graph.dag

    @property
    def picture(self) -> Any:
        """The newest program as a `common.tools.pictures.diagram.Picture`: ``f.picture.save("step.svg")``, or print
        it.
        """
        from static.reports.program_picture import picture_of

        newest = self.newest
        named = [f"{getattr(x, 'name', '') or 'tensor'}.grad" for x in newest.grad_targets]
        count = newest.returned
        outputs = ["output"] if count == 1 else [f"output {i}" for i in range(count)]
        return picture_of(newest.graph, self.__name__, [*outputs, *named])

    @property
    def code(self) -> str:
        """The newest program as text: a line per op."""
        return str(self.newest.graph)

    def save(self, f: Any) -> None:
        """Write the program with its state to a file, see `static.save`."""
        program_files().save(self, f)

    @property
    def source(self) -> str:
        """The generated Python source of the newest program; its graph as text when it is interpreted."""
        program = self._newest_program
        return str(self.newest.graph) if program is None else program.source

    @property
    def llvm(self) -> str:
        """The LLVM IR of the newest program's kernels, as written, before LLVM optimises it; "" when interpreted."""
        from common.compiler.compile import llvm_text

        program = self._newest_program
        if program is None:
            return ""
        sources = {step.name: step.source for step in program.all_steps() if step.source}
        return "\n".join(llvm_text(source, name, program.options.compiler) for name, source in sources.items())

    @property
    def compiler(self) -> str:
        """The compiler of the newest program's kernels, "llvm" or "numba"; see docs/compilers.md."""
        from common.compiler.compile import default_compiler

        program = self.newest.program
        return (None if program is None else program.options.compiler) or default_compiler()

    @property
    def newest_plan(self) -> Any:
        """The plan that was made last for the newest trace; None when it is interpreted or not planned any more."""
        plans = (plan for traced, plan in reversed(self._by_call.values()) if traced is self.newest)
        return next((plan for plan in plans if type(plan) is Plan), None)

    @property
    def _newest_program(self) -> LoweredProgram | None:
        """The program of `newest_plan`, whose kernels are shaped for its sizes."""
        plan = self.newest_plan
        program: LoweredProgram | None = self.newest.program if plan is None else plan.whole.lowered
        return program

    def explain(self) -> Explanation:
        """Explain tracing, rewriting, fusion and compilation, as data that prints well."""
        from static.reports.explain import Explanation

        return Explanation(self)

    def dump(self, folder: str | Path) -> list[Path]:
        """Write the newest program, one numbered text file per stage and kernel; see `static.reports.dump.dump`."""
        from static.reports.dump import dump

        return dump(self, folder)
