"""A program with its gradients, cut in two halves: the call, and its backward pass.

The backward half needs values of the forward one. `static.passes.rematerialise.kept_within` decides which of them the
forward half keeps, and which the backward half computes again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from static.graph.lifetimes import Key
from static.graph.nodes import Graph, Node, Value, rebuild
from static.graph.side_effects import acts
from static.passes.rematerialise import kept_within
from static.passes.remove_dead import remove_dead


class Halves(NamedTuple):
    """The two programs.

    Attributes
    ----------
    forward : its outputs are the results, then values that are kept for the backward half only.
    backward : its inputs are `kept`, then the cotangents; its outputs the gradients.
    kept : what the backward half takes, as values of the forward one: inputs, results, and further outputs.
    """

    forward: Graph
    backward: Graph
    kept: list[Value]


def split(joint: Graph, results: int, cotangents: Sequence[Value], budget: int | None = None) -> Halves:
    """Cut a graph whose outputs are results and then gradients.

    Parameters
    ----------
    results : how many outputs are results; effects belong to the forward half.
    cotangents : those of the inputs that only exist once a backward pass runs.
    budget : how many bytes may be kept, besides arguments, state and results; for the sizes of the traced call.

    Raises
    ------
    ArgumentError : the budget is less than what cannot be computed again.
    """
    gradients = joint.outputs[results:]
    given = {value.key for value in cotangents}
    late = _reached(joint, given)
    acting = [node for node in joint.nodes if acts(node)]
    done = {node.id for node in acting if any(value.key in late for value in (*node.values, *node.outputs))}
    needed = _ancestors(joint, [value for value in gradients if value.key in late], also=done)
    uses = [
        v for n in joint.nodes if n.id in needed and n.outputs[0].key in late for v in n.values if v.key not in late
    ]
    uses += [value for value in gradients if value.key not in late]
    written = {effect.state.key for effect in joint.effects}
    shown = {value.key for value in joint.outputs[:results]}
    cut = kept_within(joint, shown | {v.key for v in joint.inputs if v.key not in written}, uses, budget)
    own = _ancestors(joint, gradients, {value.key for value in cut} | given, done)
    body = [node for node in joint.nodes if node.id in own and node.op is not None]
    used = {value.key for node in body for value in node.values} | {value.key for value in gradients}
    kept = [value for value in cut if value.key in used]
    backward = _program([*kept, *cotangents], body, gradients)
    extra = [v for v in kept if v.key not in shown and (v.node.op is not None or v.key in written)]
    early = {node.id for node in acting} - done
    forward = _forward(joint, [*joint.outputs[:results], *extra], given, early)
    return Halves(forward, backward, kept)


def continued(graph: Graph, known: Sequence[Value]) -> tuple[Graph, list[int]]:
    """A graph in which some values are further inputs, behind its own, and not computed again.

    Parameters
    ----------
    known : values of another graph, which those of this one with the same keys are equal to. Results of nodes with
        regions are not among them: passes number these as they need them.

    Returns
    -------
    graph, positions : and the positions in `known` of the values that it takes.
    """
    own = {value.key: value for node in graph.nodes for value in node.outputs}
    wanted = [i for i, v in enumerate(known) if v.key in own and v.node.op is not None and v.node.op.kind != "control"]
    first = 1 + max((node.id for node in graph.nodes), default=0)
    given = {
        i: Node(first + i, None, (), {"name": f"known{i}"}, (known[i].spec,), known[i].node.source) for i in wanted
    }
    replace: dict[Key, Any] = {known[i].key: node.outputs[0] for i, node in given.items()}
    inputs = [*graph.inputs, *(node.outputs[0] for node in given.values())]
    whole = Graph(inputs, [*given.values(), *graph.nodes], graph.outputs, graph.effects)
    whole = remove_dead(rebuild(whole, whole.nodes, replace))
    read = {value.key for value in (*whole.results, *(v for node in whole.nodes for v in node.values))}
    used = [i for i, node in given.items() if node.outputs[0].key in read]
    spare = {node.id for i, node in given.items() if i not in used}
    whole.inputs = [value for value in whole.inputs if value.node.id not in spare]
    whole.nodes = [node for node in whole.nodes if node.id not in spare]
    return whole, used


def _forward(joint: Graph, outputs: list[Value], given: set[Key], done: set[int]) -> Graph:
    inputs = [value for value in joint.inputs if value.key not in given]
    alive = _ancestors(joint, [*outputs, *inputs, *(effect.value for effect in joint.effects)], also=done)
    return Graph(inputs, [node for node in joint.nodes if node.id in alive], outputs, joint.effects)


def _reached(graph: Graph, start: set[Key]) -> set[Key]:
    """The values that depend on some of `start`, these included."""
    late = set(start)
    for node in graph.nodes:
        if any(value.key in late for value in node.values):
            late.update(value.key for value in node.outputs)
    return late


def _ancestors(graph: Graph, values: Iterable[Value], stop: Iterable[Key] = (), also: Collection[int] = ()) -> set[int]:
    """Ids of the nodes from which values, and the nodes in `also`, follow; not further than the values in `stop`."""
    ends = set(stop)
    wanted = {value.key for value in values}
    found: set[int] = set()
    for node in reversed(graph.nodes):
        if node.id in also or any(value.key in wanted and value.key not in ends for value in node.outputs):
            found.add(node.id)
            wanted.update(value.key for value in node.values)
    return found


def _program(inputs: Sequence[Value], body: Iterable[Node], outputs: Sequence[Value]) -> Graph:
    """A graph of its own, with new numbers, in which `inputs` are inputs."""
    new: dict[Key, Value] = {}
    nodes: list[Node] = []
    for i, value in enumerate(inputs):
        nodes.append(Node(i, None, (), {"name": f"kept{i}"}, (value.spec,), value.node.source))
        new[value.key] = nodes[-1].outputs[0]
    count = len(nodes)
    for node in body:
        operands = tuple(new[x.key] if type(x) is Value else x for x in node.operands)
        specs = [value.spec for value in node.outputs]
        nodes.append(Node(len(nodes), node.op, operands, node.attrs, specs, node.source, node.scope))
        for old, value in zip(node.outputs, nodes[-1].outputs, strict=True):
            new.setdefault(old.key, value)
    return Graph([node.outputs[0] for node in nodes[:count]], nodes, [new[v.key] for v in outputs], [])
