"""Dead code elimination across the borders of regions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from static.graph import Graph, Node, Value
from static.graph.region_edit import LoopEdit, Made, replace_nodes
from static.graph.regions import branches, close
from static.graph.side_effects import acts
from static.passes.remove_dead import remove_dead


def trim_regions(graph: Graph) -> Graph:
    """results of regions that nobody reads, and operands that no region reads -> nothing."""
    if not any(node.regions for node in graph.nodes):
        return graph
    used = {v.key for v in (*graph.results, *(v for node in graph.nodes for v in node.values))}
    changes: dict[int, Any] = {}
    for node in graph.nodes:
        if not node.regions:
            continue
        wanted = [i for i, v in enumerate(node.outputs) if v.key in used]
        if not wanted and node.outputs and acts(node):
            wanted = [0]  # it stays for what it does
        trim = _trim_switch if node.name == "switch" else _trim_loop
        if trim(node, wanted, True):
            changes[node.id] = trim, wanted
    if not changes:
        return graph

    def make(node: Node) -> Made | None:
        if node.id not in changes:
            return None
        trim, wanted = changes[node.id]
        made: Made = trim(node, wanted, False)
        return made

    return trim_regions(remove_dead(replace_nodes(graph, make)))  # what is read by less may be read by nobody now


def _needed(graph: Graph, outputs: Iterable[Value]) -> set[Any]:
    """Keys of the inputs on which outputs and acts depend."""
    live = {v.node.id for v in outputs} | {node.id for node in graph.nodes if acts(node)}
    for node in reversed(graph.nodes):
        if node.id in live:
            live.update(v.node.id for v in node.values)
    return {v.key for v in graph.inputs if v.node.id in live}


def _trim_loop(node: Node, wanted: list[int], ask: bool) -> Any:
    edit = LoopEdit(node)
    body, condition = edit.parts.body, edit.parts.condition
    stacked = [entry for entry in edit.stacked if entry[1] in wanted]
    asked = set() if condition is None else _needed(condition, condition.outputs)
    live = {
        k for k, entry in enumerate(edit.carried) if k in wanted or (condition is not None and entry[3].key in asked)
    }
    while True:
        needed = _needed(body, [*(edit.carried[k][2] for k in live), *(entry[0] for entry in stacked)])
        more = {k for k, entry in enumerate(edit.carried) if entry[1].key in needed} - live
        if not more:
            break
        live |= more
    before = [len(x) for x in (edit.carried, edit.rows, edit.constants, edit.stacked, edit.tests)]
    edit.carried = [entry for k, entry in enumerate(edit.carried) if k in live]
    edit.stacked = stacked
    edit.rows = [entry for entry in edit.rows if entry[1].key in needed]
    edit.constants = [entry for entry in edit.constants if entry[1].key in needed]
    edit.tests = [entry for entry in edit.tests if entry[1].key in asked]
    if ask:
        return before != [len(x) for x in (edit.carried, edit.rows, edit.constants, edit.stacked, edit.tests)]
    return edit.build()


def _trim_switch(node: Node, wanted: list[int], ask: bool) -> Any:
    parts = branches(node)
    needs = [_needed(region, [region.outputs[i] for i in wanted]) for region, _ in parts]
    reads = [
        [(place, x) for place, x in zip(uses, region.inputs, strict=True) if x.key in need]
        for (region, uses), need in zip(parts, needs)
    ]
    if ask:
        counts = [len(region.inputs) for region, _ in parts]
        return len(wanted) < len(node.outputs) or counts != [len(read) for read in reads]
    kept = sorted({place for read in reads for place, _ in read})
    attrs: dict[str, Any] = {}
    for i, ((region, _), read) in enumerate(zip(parts, reads)):
        outputs = [region.outputs[k] for k in wanted]
        attrs[f"branch{i}"], _ = close(region.nodes, [x for _, x in read], outputs, {})
        attrs[f"uses{i}"] = tuple(kept.index(place) for place, _ in read)
    operands = (node.operands[0], *(node.operands[1 + place] for place in kept))
    specs = [node.outputs[i].spec for i in wanted]
    made = Node(node.id, node.op, operands, attrs, specs, node.source, node.scope)
    return made, {old: new for new, old in enumerate(wanted)}
