"""The intermediate representation: a program as a DAG of typed records.

Grammar::

    graph  ::= inputs node* outputs effects guards
    node   ::= id op operand* attrs spec+ source scope          # results are (node, index)
    operand::= value | number                                   # a number is weak: rounded once by its consumer
    effect ::= write(state input, value)                        # ordered; carried out if the call succeeds
    attrs  ::= plain data: numbers, strings, dtypes, tuples, Dims, graphs (the regions of control flow)

An input has the name of what it reads, "arg0" or that of a parameter. Because attributes are plain data, a graph
can be saved: `static.graph.serialize`.

Nodes stand in program order, which is a topological order, and are numbered as they are traced; what a pass adds takes
numbers behind these, so an id never changes its meaning. In regions these are `derived_id`: a loop and its gradient
name what they have in common alike, and nothing else.
Passes are pure functions ``Graph -> Graph`` that rebuild the node list. `Graph.dag` is the same program as a
networkx.DiGraph, for algorithms and for users.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import is_
from typing import TYPE_CHECKING, Any

from common.core.digraph import digraph
from common.core.op import DEFAULTS, Op
from common.core.spec import Spec, Specified, named

if TYPE_CHECKING:
    import networkx as nx

Source = tuple[str, int, str]
"""File, line and function of the user's code that made a node."""


def derived_id(*of: int) -> int:
    """The id of a node that a pass makes in the place of others: the same in all regions, a hash of 61 bits.

    Parameters
    ----------
    of : id of a node, then numbers that tell what is made of it.

    Examples
    --------
    >>> derived_id(7, 0) == derived_id(7, 0) != derived_id(7, 1)
    True
    >>> derived_id(7, -1) == derived_id(7, -2)
    False
    """
    even = tuple([2 * x for x in of])  # Python hashes -1 as -2
    return hash(even) & (1 << 61) - 1 | 1 << 61


class GraphOp:
    """An op that only graphs have: control flow, or an act. It has the fields of a record, none of them set.

    Attributes
    ----------
    kind : "control" or "act".
    nout : of an act 1: a result that nobody reads but a callback's, which orders it among a program's steps. How many
        results control flow has depends on the node.
    """

    differentiable = False
    inputs: tuple[str, ...] = ()

    def __init__(self, name: str, kind: str, attrs: tuple[str, ...] = ()) -> None:
        vars(self).update(DEFAULTS, name=name, kind=kind, nout=int(kind == "act"), attrs=attrs)

    def __repr__(self) -> str:
        return f"<op {vars(self)['name']}>"


class Value(Specified):
    """One result of a node. In rules and composites it is what an array is to the eager engine."""

    __slots__ = ("node", "index", "spec")

    def __init__(self, node: Node, index: int, spec: Spec) -> None:
        self.node, self.index, self.spec = node, index, spec

    @property
    def key(self) -> tuple[int, int]:
        """Node id and result index: identifies the value inside its graph."""
        return (self.node.id, self.index)

    def __repr__(self) -> str:
        return f"%{self.node.id}" + (f".{self.index}" if len(self.node.outputs) > 1 else "")


class Node:
    """One application of an op.

    Attributes
    ----------
    id : number in the order of tracing; larger ones are of nodes that a pass has added.
    op : the op record; None for an input of the graph.
    operands : values and numbers.
    attrs : plain data; sizes may be Dims.
    outputs : its values.
    source : the user's file, line and function.
    scope : composite or module path in which the node was made, e.g. "log_softmax".
    """

    __slots__ = ("id", "op", "operands", "attrs", "outputs", "source", "scope")

    def __init__(
        self,
        id: int,
        op: Op | None,
        operands: tuple[Any, ...],
        attrs: dict[str, Any],
        specs: Iterable[Spec],
        source: Source,
        scope: str = "",
    ) -> None:
        self.id, self.op, self.operands, self.attrs = id, op, operands, attrs
        self.source, self.scope = source, scope
        self.outputs = tuple([Value(self, i, spec) for i, spec in enumerate(specs)])

    @property
    def name(self) -> str:
        """The op's name, or "input"."""
        return "input" if self.op is None else self.op.name

    @property
    def regions(self) -> list[tuple[str, Graph]]:
        """The sub-graphs among the attributes, by name: control flow has some."""
        if self.op is None or self.op.kind != "control":
            return []
        return [(name, x) for name, x in self.attrs.items() if isinstance(x, Graph)]

    @property
    def values(self) -> Iterator[Value]:
        """The operands that are values."""
        return (x for x in self.operands if type(x) is Value)

    def __str__(self) -> str:
        results = ", ".join(f"{v!r}: {v.spec}" for v in self.outputs)
        operands = [
            *map(str, self.operands),
            *(f"{k}={named(v)}" for k, v in self.attrs.items() if not isinstance(v, Graph)),
        ]
        text = f"{results} = {self.name}({', '.join(operands)})"
        for name, region in self.regions:
            text += f"\n  {name}:\n    " + str(region).replace("\n", "\n    ")
        return text


class Effect:
    """A write to named state: after the call `state`'s array holds `value`.

    Attributes
    ----------
    state : the graph input through which the state is read.
    value : what is written; same shape and dtype.
    """

    __slots__ = ("state", "value")

    def __init__(self, state: Value, value: Value) -> None:
        self.state, self.value = state, value


class Graph:
    """A program: see the module's docstring.

    Attributes
    ----------
    inputs : values of the input nodes, arguments first, then captured state.
    nodes : all nodes in program order, inputs included.
    outputs : the returned values, in order; may repeat.
    effects : writes to state, in order, at most one per state.
    """

    def __init__(self, inputs: list[Value], nodes: list[Node], outputs: list[Value], effects: list[Effect]) -> None:
        self.inputs, self.nodes, self.outputs, self.effects = inputs, nodes, outputs, effects

    @property
    def results(self) -> list[Value]:
        """Everything that must be computed: outputs, then values written by effects."""
        return [*self.outputs, *(effect.value for effect in self.effects)]

    def all_nodes(self) -> Iterator[Node]:
        """All nodes, those of regions included."""
        for node in self.nodes:
            yield node
            for _, region in node.regions:
                yield from region.all_nodes()

    def users(self) -> dict[tuple[int, int], list[Node]]:
        """Consumers of each value, in program order, each node once."""
        table: dict[tuple[int, int], list[Node]] = {v.key: [] for n in self.nodes for v in n.outputs}
        for node in self.nodes:
            for key in dict.fromkeys(v.key for v in node.values):
                table[key].append(node)
        return table

    @property
    def dag(self) -> nx.DiGraph:
        """The program as a networkx.DiGraph, see `common.core.digraph` and `static.graph.dag`."""
        records = [(node.id, node, node.name) for node in self.nodes]
        operands = ((node.id, [x.key if type(x) is Value else None for x in node.operands]) for node in self.nodes)
        made = digraph(records, operands)
        for node in self.nodes:
            numbers = {i: x for i, x in enumerate(node.operands) if type(x) is not Value}
            specs = tuple(v.spec for v in node.outputs)
            made.nodes[node.id].update(
                attrs=dict(node.attrs), specs=specs, numbers=numbers, source=node.source, scope=node.scope
            )
        made.graph.update(
            inputs=[v.key for v in self.inputs],
            outputs=[v.key for v in self.outputs],
            effects=[(effect.state.key, effect.value.key) for effect in self.effects],
        )
        return made

    def __str__(self) -> str:
        lines = [str(node) for node in self.nodes]
        lines += [f"write({e.state!r}, {e.value!r})" for e in self.effects]
        lines.append(f"return {', '.join(map(repr, self.outputs))}")
        return "\n".join(lines)


def rebuild(graph: Graph, nodes: Iterable[Node], replace: dict[tuple[int, int], Any]) -> Graph:
    """A graph of `nodes` (kept in order, ids unchanged) with operands, outputs and effects redirected.

    Parameters
    ----------
    replace : value key -> value (or number) that takes its place, already final.

    Returns
    -------
    Graph : `graph` itself if nothing changes.
    """
    nodes = list(nodes)
    if not replace and len(nodes) == len(graph.nodes) and all(map(is_, nodes, graph.nodes)):
        return graph
    moved: dict[tuple[int, int], Value] = {}

    def new(value: Any) -> Any:
        if type(value) is not Value:
            return value
        target = replace.get(value.key, value)
        while type(target) is Value and target.key in replace:
            target = replace[target.key]
        return moved.get(target.key, target) if type(target) is Value else target

    kept = []
    for node in nodes:
        operands = tuple(new(x) for x in node.operands)
        copy = Node(node.id, node.op, operands, node.attrs, (v.spec for v in node.outputs), node.source, node.scope)
        for old, value in zip(node.outputs, copy.outputs, strict=True):
            moved[old.key] = value
        kept.append(copy)
    inputs = [moved[v.key] for v in graph.inputs]
    effects = [Effect(moved[e.state.key], new(e.value)) for e in graph.effects]
    return Graph(inputs, kept, [new(v) for v in graph.outputs], effects)
