"""A compiled function as text files: every stage from the traced program to the kernels, to read and to compare."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from static.graph import Graph
from static.passes import default_pipeline, run_passes
from static.reports import costs
from static.reports.explain import Inspected

if TYPE_CHECKING:
    from static.lowering.lowered_program import LoweredProgram
    from static.running.plan import Plan


def dump(function: Inspected, folder: str | Path) -> list[Path]:
    """Write the newest program of a function, one numbered text file per stage.

    Parameters
    ----------
    folder : made if it does not exist; files of the same names are replaced.

    Returns
    -------
    list of Path
        ``00_traced.txt``; one file per pass, with what it rewrote; ``..._groups.txt``, which nodes became one kernel
        and why others did not; one ``.py`` per distinct kernel; ``..._calls.txt``, the kernel calls in order and where
        their memory lies; last the explanation.

    Raises
    ------
    TraceError : the function has not been called yet.
    OSError : the folder cannot be written.
    """
    newest, plan = function.newest, function.newest_plan
    program = newest.program if plan is None else plan.whole.lowered
    stages = [("traced.txt", str(newest.raw))]
    graph: Graph = newest.raw
    for rewrite in default_pipeline(graph) if function.passes is None else function.passes:
        given, (graph, _) = graph, run_passes(graph, (rewrite,))
        stages.append((f"{rewrite.__name__}.txt", _stage(rewrite.__doc__, given, graph)))
    if program is not None:
        stages += _program(program, plan)
    stages.append(("explain.txt", str(function.explain())))
    home = Path(folder)
    home.mkdir(parents=True, exist_ok=True)
    paths = [home / f"{i:02d}_{name}" for i, (name, _) in enumerate(stages)]
    for path, (_, text) in zip(paths, stages, strict=True):
        path.write_text(text.rstrip() + "\n", encoding="utf-8")
    return paths


def _stage(doc: str | None, before: Graph, after: Graph) -> str:
    head = f"# {(doc or '').strip().splitlines()[0] if doc else 'no description'}\n"
    if after is before:
        return f"{head}# nothing to rewrite"
    return f"{head}# {len(before.nodes)} nodes before, {len(after.nodes)} after\n{after}"


def _program(program: LoweredProgram, plan: Plan | None) -> list[tuple[str, str]]:
    groups = []
    for number, group in enumerate(program.groups):
        groups.append(f"group {number}")
        groups += [f"  %{item.node.id} {item.name}" for item in group.items]
        groups += [f"  not with %{there.node.id} {there.node.name}: {reason}" for _, there, reason in group.why_not]
    sources = {step.name: step.source for step in program.all_steps() if step.source}
    stages = [("groups.txt", "\n".join(groups))]
    stages += [(f"kernel_{name}.py", source) for name, source in sources.items()]
    calls = list(program.call_lines())
    if plan is not None:
        calls += ["", f"arena of {plan.arena_bytes} bytes:", *map(str, costs.arena(plan))]
    return [*stages, ("calls.txt", "\n".join(calls))]
