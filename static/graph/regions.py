"""Regions of a graph: control flow runs them once, many times or not at all.

Two ops have regions. Their operands are listed below; every region is closed: it reads its own inputs only.

``switch`` (index, values...): attributes ``branch0``, ``branch1``, ... are regions, ``uses0``, ... say which of the
values each of them reads; all have the same results, which are those of the node.

``loop`` ([count], carried..., rows..., constants..., constants of the condition...): the region ``body`` takes what
is carried, one row of each stack, and the constants; it gives what is carried on, then rows of stacked results. The
region ``condition``, if there is one, takes what is carried and its own constants, and gives a bool. Attributes:
``carried``, ``rows``, ``constants`` count operands; ``length`` is the first size of stacks; ``counted`` says that the
number of iterations is the first operand; ``backwards``, that rows are visited from the last to the first; ``of``, in a
gradient, is the id of the loop that it differentiates, some of whose nodes it has too, with their ids; ``sums``, there,
says from which to which place what is carried is a sum, from zero, that the body only adds to. Results: what
is carried at the end, the stacks, and with a condition the number of iterations. Then, and if ``counted``, ``length``
is a size that no argument has: the number of iterations for which there is room. A run that needs more of it ends,
and is repeated with more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from common.core.errors import CompileError, GraphError
from common.core.op import ADD
from common.core.sizes import Dim, DimScope, hint
from common.core.spec import Spec
from static.graph.nodes import Graph, GraphOp, Node, Value
from static.graph.side_effects import acts

FIRST_ROOM = 64
"""Iterations for which there is room at first where data decide their number."""


class NeedsRoom(Exception):
    """A loop needs more room: the atom of the size that says how much there is.

    Not an error of the user's: whoever runs the program makes a plan with more, and runs it again.
    """

    def __init__(self, atom: Any) -> None:
        super().__init__(atom)
        self.atom = atom


LOOP: Any = GraphOp("loop", "control")
SWITCH: Any = GraphOp("switch", "control")
CONTROL: dict[str, Any] = {"loop": LOOP, "switch": SWITCH}


def room(scope: DimScope, number: int) -> Dim:
    """The size of stacks of a loop whose number of iterations depends on data."""
    return Dim((((("room", number),), 1),), FIRST_ROOM, scope)


def rooms(graph: Graph) -> list[Any]:
    """The atoms of all sizes that no argument has, regions included."""
    found: dict[Any, None] = {}
    for node in graph.nodes:
        if node.op is LOOP and isinstance(node.attrs["length"], Dim):
            found.update(dict.fromkeys(a for atoms, _ in node.attrs["length"].terms for a in atoms if a[0] == "room"))
        for _, region in node.regions:
            found.update(dict.fromkeys(rooms(region)))
    return list(found)


def close(
    nodes: Sequence[Node], inputs: Sequence[Value], outputs: Sequence[Value], moved: Mapping[Any, Value], since: int = 0
) -> tuple[Graph, list[Value]]:
    """A region of the nodes that its outputs need, of its acts, and the values from outside that it reads.

    Nodes keep their ids, so that a region and the one that differentiates it name equal values alike; inputs have
    negative ids.

    Parameters
    ----------
    moved : keys of values from outside in whose place an input is read.
    since : acts from this id on belong to the region; those before, to the one that it differentiates.

    Returns
    -------
    region : its inputs are `inputs`, then one per value from outside.
    free : those values.
    """
    nodes = [node for node in nodes if node.id >= 0]  # inputs and constants are made anew
    own = {v.key for node in nodes for v in node.outputs}
    live = {v.node.id for v in outputs}
    kept = []
    for node in reversed(nodes):
        if node.id in live or (node.id >= since and acts(node)):
            kept.append(node)
            live.update(v.node.id for v in node.values)
    kept.reverse()
    given = {v.key for v in inputs}
    free: dict[tuple[int, int], Value] = {}
    constants: dict[int, Node] = {}
    for value in (*(v for node in kept for v in node.values), *outputs):
        key = value.key
        if key in own or key in given or key in moved:
            continue
        if value.node.op is not None and not value.node.operands and not value.shape:
            constants[value.node.id] = value.node
        else:
            free[key] = value
    made: list[Node] = []
    new: dict[tuple[int, int], Value] = {}
    first = -len(inputs) - len(free) - len(constants)
    for value in (*inputs, *free.values()):
        node = Node(first + len(made), None, (), {"name": f"in{len(made)}"}, (value.spec,), value.node.source)
        made.append(node)
        new[value.key] = node.outputs[0]
    region_inputs = [node.outputs[0] for node in made]
    for old in constants.values():
        node = Node(first + len(made), old.op, (), old.attrs, (old.outputs[0].spec,), old.source)
        made.append(node)
        new[old.outputs[0].key] = node.outputs[0]
    new.update((key, new[value.key]) for key, value in moved.items())
    for old in kept:
        operands = tuple(new[x.key] if type(x) is Value else x for x in old.operands)
        node = Node(old.id, old.op, operands, old.attrs, (v.spec for v in old.outputs), old.source, old.scope)
        made.append(node)
        new.update((a.key, b) for a, b in zip(old.outputs, node.outputs, strict=True))
    return Graph(region_inputs, made, [new[v.key] for v in outputs], []), list(free.values())


def branches(node: Node) -> list[tuple[Graph, tuple[int, ...]]]:
    """The regions of a switch, and the positions among its values that each reads."""
    count = sum(name.startswith("branch") for name in node.attrs)
    return [(node.attrs[f"branch{i}"], node.attrs[f"uses{i}"]) for i in range(count)]


def iterations(node: Node) -> Any:
    """How often the region of a node runs, an int or a Dim; None where data decide."""
    counts = node.op is LOOP and not node.attrs["counted"] and "condition" not in node.attrs
    return node.attrs["length"] if counts else None


class LoopParts:
    """The operands of a loop, by what they are."""

    def __init__(self, node: Node) -> None:
        attrs, operands, self.node = node.attrs, node.operands, node
        self.body: Graph = attrs["body"]
        self.condition: Graph | None = attrs.get("condition")
        self.backwards, self.counted, self.length = attrs["backwards"], attrs["counted"], attrs["length"]
        self.room = None if self.condition is None else self.length.terms[0][0][0]
        self.n = attrs["carried"]
        places = [int(self.counted), self.n, attrs["rows"], attrs["constants"]]
        ends = [sum(places[: i + 1]) for i in range(4)]
        self.carried = range(ends[0], ends[1])
        self.rows = range(ends[1], ends[2])
        self.constants = range(ends[2], ends[3])
        self.tests = range(ends[3], len(operands))
        self.stacked = range(self.n, len(self.body.outputs))

    def without_sums(self) -> tuple[Graph, range]:
        """The body that gives what it adds to each sum, in its place, and does not take it; and the places of sums.

        Raises
        ------
        GraphError : what is said to be a sum, from zero, is none.
        """
        body: Graph = self.body
        first, last = self.node.attrs.get("sums", (0, 0))
        sums = range(first, min(last, self.n))
        if (first, last) != (sums.start, sums.stop) or first < 0:
            raise GraphError(f"%{self.node.id} loop: it has no sums at {first} to {last}")
        if not sums:
            return body, sums
        outputs, gone = list(body.outputs), set()
        for k in sums:
            start = self.node.operands[self.carried[k]]
            total = body.outputs[k].node
            if type(start) is not Value or start.node.attrs.get("value") != 0.0 or start.node.operands:
                raise GraphError(f"%{self.node.id} loop: its sum {k} does not start from zero")
            if total.name != ADD or total.operands[0] is not body.inputs[k]:
                raise GraphError(f"%{self.node.id} loop: what it carries at {k} is no sum")
            outputs[k] = total.operands[1]
            gone |= {body.inputs[k].node, total}
        inputs = [x for k, x in enumerate(body.inputs) if k not in sums]
        nodes = [node for node in body.nodes if node not in gone]
        if self.condition is not None or any(x.node in gone for x in (*outputs, *(v for n in nodes for v in n.values))):
            raise GraphError(f"%{self.node.id} loop: a sum is read before the loop has ended")
        return Graph(inputs, nodes, outputs, []), sums

    def hidden(self) -> dict[int, int]:
        """The last stacks, which only its gradient reads: place among the results -> of which carried input."""
        places = {value.key: k for k, value in enumerate(self.body.inputs[: self.n])}
        found: dict[int, int] = {}
        last = self.n
        for i in reversed(self.stacked):
            k = places.get(self.body.outputs[i].key, last)
            if k >= last:
                break
            found[i] = last = k
        return found


def check(node: Node, stage: str) -> None:
    """Check that a node's regions fit its operands and results.

    Raises
    ------
    CompileError : they do not.
    """
    if node.name == "switch":
        for region, uses in branches(node):
            _fits(node, stage, [node.operands[1 + i] for i in uses], region.inputs)
            _fits(node, stage, region.outputs, node.outputs)
        return
    parts = LoopParts(node)
    given = {name: node.operands[r.start : r.stop] for name, r in vars(parts).items() if type(r) is range}
    inputs, outputs = parts.body.inputs, parts.body.outputs
    stacks = node.outputs[parts.n : len(outputs)]
    asks = parts.condition is not None
    missing = parts.tests.start - len(node.operands)
    if len(node.outputs) != len(outputs) + asks or missing > 0 or (missing < 0 and not asks):
        raise CompileError(f"after {stage}: %{node.id} {node.name}: its operands or results are not as many as it says")
    _fits(node, stage, given["carried"], inputs[: parts.n])
    _fits(node, stage, given["carried"], outputs[: parts.n])
    _fits(node, stage, given["carried"], node.outputs[: parts.n])
    _fits(node, stage, [_row(x) for x in given["rows"]], inputs[parts.n : parts.n + len(parts.rows)])
    _fits(node, stage, given["constants"], inputs[parts.n + len(parts.rows) :])
    _fits(node, stage, outputs[parts.n :], [_row(x) for x in stacks])
    if parts.condition is not None:
        _fits(node, stage, [*given["carried"], *given["tests"]], parts.condition.inputs)


def _row(stack: Value) -> Value:
    """A value like one row of a stack."""
    return Value(stack.node, 0, Spec(stack.shape[1:], stack.dtype))


def _fits(node: Node, stage: str, given: Sequence[Any], wanted: Sequence[Value]) -> None:
    if len(given) != len(wanted):
        raise CompileError(f"after {stage}: %{node.id} {node.name}: {len(given)} values for {len(wanted)}")
    for a, b in zip(given, wanted):
        if a.dtype != b.dtype or [hint(n) for n in a.shape] != [hint(n) for n in b.shape]:
            raise CompileError(f"after {stage}: %{node.id} {node.name}: {a.spec} for {b.spec}")
