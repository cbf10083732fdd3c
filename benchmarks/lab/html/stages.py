"""A program at every stage as plain data: source lines, eager tape, recorded graph, passes, groups, kernels.

Whatever belongs together shares marks: the number of a node, and the user's line. A page lights up by them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.lab.rungs import climb
from benchmarks.workload import Workload
from static.graph import Graph, Node
from static.lowering.lowered_program import LoweredProgram
from static.passes import default_pipeline, run_passes
from static.tools.replay import phase

HOME = Path(__file__).resolve().parent.parent.parent
"""The package `benchmarks`."""
STEP = HOME / "lab" / "training.py"
"""The training step around a module."""
AROUND = 2
"""Lines of a file that are shown around those that the program has."""


def stages(
    workload: Workload, dynamic: ModuleType, static: ModuleType, kernels: Iterable[Mapping[str, Any]] = ()
) -> dict[str, Any] | None:
    """Return the stages of a program; None if it is not one compiled function.

    Parameters
    ----------
    kernels : iterable of dict
        What is known of the kernel calls, see `benchmarks.lab.counting.kernels`, perhaps with seconds.
    """
    first, *_, last = climb(workload, dynamic, static)
    for rung in (first, last):
        rung.call(*rung.inputs[0])
    function = last.function
    if function is None or function.newest.program is None:
        return None
    newest = function.newest
    raw = [_node(node) for node in _shown(newest.raw)]
    compiled = _kernels(newest.program, list(kernels))
    passes = _passes(newest.raw)
    return {
        "source": _sources(raw), "eager": _eager(first, dynamic), "raw": raw, "passes": passes,
        "kernels": compiled, "retraces": list(function.retraces), "arena": _arena(function),
        "guards": [str(guard) for guard in newest.trace.guards],
    }  # fmt: skip


def _shown(graph: Graph) -> list[Node]:
    return [node for node in graph.nodes if node.op is not None]


def _node(node: Node) -> dict[str, Any]:
    file, line, function = node.source
    return {
        "id": node.id, "op": node.name, "text": str(node), "phase": phase(node), "scope": node.scope,
        "file": file, "line": line, "function": function,
    }  # fmt: skip


def _passes(graph: Graph) -> list[dict[str, Any]]:
    """Every pass that changed something: what it says it does, and which nodes went and came."""
    found = []
    for rewrite in default_pipeline(graph):
        before = {node.id: str(node) for node in _shown(graph)}
        graph, (report,) = run_passes(graph, (rewrite,))
        after = {node.id: str(node) for node in _shown(graph)}
        if before == after:
            continue
        found.append(
            {
                "name": report.name, "about": (rewrite.__doc__ or "").strip().partition("\n")[0],
                "before": len(before), "after": len(after),
                "gone": [{"id": i, "text": text} for i, text in before.items() if i not in after],
                "come": [{"id": i, "text": text} for i, text in after.items() if before.get(i) != text],
                "graph": [_node(node) for node in _shown(graph)],
            }
        )  # fmt: skip
    return found


def _kernels(program: LoweredProgram, known: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Every kernel call: its nodes, why it holds no more, its text and what it costs."""
    found = []
    for i, step in enumerate(program.all_steps()):
        nodes = [item.node for group in step.groups for item in group.items]
        refused = [
            {"text": f"not with {there.node.name} (%{there.node.id}) for {here.node.name} (%{here.node.id}): {reason}",
             "ids": [here.node.id, there.node.id]}
            for group in step.groups
            for here, there, reason in group.why_not
        ]  # fmt: skip
        cost = known[i] if len(known) > i and known[i]["name"] == step.name else {}
        found.append(
            {
                "name": step.name, "ops": [node.name for node in nodes], "ids": sorted({node.id for node in nodes}),
                "lines": sorted({(node.source[0], node.source[1]) for node in nodes}),
                "refused": refused, "text": step.source, "cost": dict(cost), "call": program.call_text(step)
                if step in program.steps else step.name,
            }
        )  # fmt: skip
    return found


def _eager(rung: Any, dynamic: ModuleType) -> list[dict[str, Any]]:
    """The eager engine's work in a call, in order: ops, then the rules of the backward pass."""
    with dynamic.profiler.profile() as profile:
        rung.call(*rung.inputs[0])
    return [
        {"name": event.name, "kind": event.kind, "file": event.source[0], "line": event.source[1],
         "shapes": str(event.input_shapes)}
        for event in profile.events()
        if event.kind in ("op", "rule", "backward")
    ]  # fmt: skip


def _sources(nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The user's files, as far as the program comes from them, with the nodes of each line."""
    lines: dict[str, dict[int, list[int]]] = {}
    for node in nodes:
        lines.setdefault(node["file"], {}).setdefault(node["line"], []).append(node["id"])
    found = []
    for file, marked in lines.items():
        path = Path(file)
        if not path.is_file() or _is_ours(path):
            continue
        text = path.read_text(encoding="utf-8").splitlines()
        near = {n for line in marked for n in range(line - AROUND, line + AROUND + 1) if 1 <= n <= len(text)}
        rows = [{"line": n, "text": text[n - 1], "ids": marked.get(n, [])} for n in sorted(near)]
        name = f"{path.name}: the training step around the module" if path == STEP else path.name
        found.append({"file": file, "name": name, "rows": rows})
    return found


def _is_ours(path: Path) -> bool:
    """Whether a file measures; the project's workloads, and the training step of a module, are what is measured."""
    return HOME in path.parents and path.parent.name != "workloads" and path != STEP


def _arena(function: Any) -> list[dict[str, Any]]:
    return [
        {"name": piece.name, "offset": piece.offset, "nbytes": piece.nbytes, "first": piece.first, "last": piece.last}
        for piece in function.explain().arena
    ]
