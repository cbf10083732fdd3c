"""A program that users hold: from a `networkx.DiGraph` back to a graph, checked.

What a program is stands in the data of the DAG, which may be edited with networkx; the record "node" is for reading.

- Data of a node: "op", the name of an op, or "input"; "attrs", its attributes; "numbers", the operands that are Python
  numbers, by position; "specs", shape and dtype of each result, which may be left out of a new node; "source" and
  "scope", where the user's program made it.
- Data of an edge: "operands" and "results", see `common.core.digraph`; left out, the first operand and result.
- Data of the DAG: "inputs" and "outputs", keys (node, number of the result); left out, the inputs and the sinks in
  ascending order. "effects": pairs of the state that is written, and what is written to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from common.core.dtypes import operand_dtypes
from common.core.errors import ArgumentError, CompileError, GraphError, TwingradError
from common.core.op import REGISTRY, Op, out_specs
from common.core.sizes import hint
from common.core.spec import Spec
from common.tensor.base import spec_of
from static.graph.nodes import Effect, Graph, Node, Value
from static.graph.regions import CONTROL
from static.graph.side_effects import ACTS
from static.graph.verify import verify

if TYPE_CHECKING:
    import networkx as nx

OWN: Mapping[str, Any] = {**CONTROL, **ACTS}
"""Ops that are not in the registry."""
NOWHERE = ("<networkx>", 0, "from_networkx")

Key = tuple[int, int]


def require_dag(dag: Any, caller: str) -> None:
    """Refuse what is no graph of the schema.

    Raises
    ------
    ArgumentError : it is no `networkx.DiGraph`, or a node is no int.
    GraphError : it has a cycle, which the message names.
    """
    import networkx as nx

    if not isinstance(dag, nx.DiGraph) or dag.is_multigraph():
        raise ArgumentError(f"{caller} takes a networkx.DiGraph, not {type(dag).__name__}: see static.trace")
    for key in dag:
        if type(key) is not int:
            raise ArgumentError(f"{caller}: nodes are ints, whose order is that of the program, not {key!r}")
    if not nx.is_directed_acyclic_graph(dag):
        cycle = [edge[0] for edge in nx.find_cycle(dag)]
        path = " -> ".join(f"%{key} ({dag.nodes[key].get('op')})" for key in [*cycle, cycle[0]])
        raise GraphError(f"{caller}: the graph has a cycle, so nothing of it can be computed first: {path}")


def graph_of(dag: nx.DiGraph, caller: str = "from_networkx()", *, derive: bool = True) -> Graph:
    """The program that a DAG describes.

    Parameters
    ----------
    derive : hold the specs against those that ops give; else those of new nodes are found when it is traced.

    Raises
    ------
    ArgumentError : something that is no program: see `require_dag`; a key of an input or output that no node has.
    GraphError : a cycle, an unknown op, operands that are too few, too many or doubled, or wrong specs. The message
        names the node, and the user's line that it comes from.
    """
    import networkx as nx

    require_dag(dag, caller)
    values: dict[Key, Value] = {}
    nodes = []
    for key in nx.lexicographical_topological_sort(dag):
        node = _node(dag, key, values, caller, derive)
        nodes.append(node)
        values.update((v.key, v) for v in node.outputs)

    def found(what: str, key: Any) -> Value:
        value = values.get(tuple(key)) if isinstance(key, (tuple, list)) else values.get((key, 0))
        if value is None:
            raise GraphError(f"{caller}: {what} is {key!r}, which is no result of a node of the graph")
        return value

    sources = [(node.id, 0) for node in nodes if node.op is None]
    sinks = [(key, 0) for key in sorted(dag) if not dag.out_degree(key) and dag.nodes[key].get("op") != "input"]
    inputs = [found("an input", key) for key in dag.graph.get("inputs", sorted(sources))]
    for value in inputs:
        if value.node.op is not None:
            raise GraphError(f"{caller}: {_place(dag, value.node.id)} is an input of the graph, but no 'input' node")
    missing = {key for key, _ in sources} - {value.node.id for value in inputs}
    if missing:
        raise GraphError(f"{caller}: {_place(dag, min(missing))} is an input that the graph's 'inputs' do not name")
    outputs = [found("an output", key) for key in dag.graph.get("outputs", sinks)]
    effects = [
        Effect(found("state", state), found("a written value", value)) for state, value in dag.graph.get("effects", ())
    ]
    graph = Graph(inputs, nodes, outputs, effects)
    try:
        verify(graph, caller)
    except CompileError as error:
        raise GraphError(str(error)) from None
    return graph


def _node(dag: nx.DiGraph, key: int, values: Mapping[Key, Value], caller: str, derive: bool) -> Node:
    data = dag.nodes[key]
    name, attrs = data.get("op"), dict(data.get("attrs", {}))
    source, scope = tuple(data.get("source", NOWHERE)), data.get("scope", "")
    operands = _operands(dag, key, values, caller)
    specs = data.get("specs")
    if name == "input":
        if operands:
            raise GraphError(f"{caller}: {_place(dag, key)} is an input, and has {len(operands)} operands")
        if specs is None or len(specs) != 1 or not all(hasattr(specs[0], name) for name in ("shape", "dtype")):
            raise GraphError(
                f"{caller}: {_place(dag, key)} needs specs=(ShapeDtypeStruct(shape, dtype),): nothing else tells them"
            )
        (given,) = specs
        spec = Spec(tuple(given.shape), np.dtype(given.dtype), getattr(given, "weak", False))
        return Node(key, None, (), {"name": f"arg{key}", **attrs}, (spec,), source)
    op = OWN.get(name) or REGISTRY.get(name) if isinstance(name, str) else None
    if op is None:
        raise GraphError(f"{caller}: {_place(dag, key)}: there is no op {name!r}; ops are listed in docs/ops.md")
    if isinstance(op, Op):
        _check_arguments(dag, key, op, operands, attrs, caller)
        if derive or specs is None:
            specs = _specs(dag, key, op, operands, attrs, specs, caller)
    elif specs is None:
        raise GraphError(f"{caller}: {_place(dag, key)} needs specs: those of {name!r} follow from nothing else")
    return Node(key, op, operands, attrs, specs, source, scope)


def _operands(dag: nx.DiGraph, key: int, values: Mapping[Key, Value], caller: str) -> tuple[Any, ...]:
    """The operands of a node in order."""
    at: dict[int, Any] = dict(dag.nodes[key].get("numbers", {}))
    for position, x in at.items():
        if not isinstance(x, (bool, int, float)):
            raise GraphError(f"{caller}: {_place(dag, key)}: operand {position} is {x!r}, which is no Python number")
    for maker, _, data in dag.in_edges(key, data=True):
        positions = tuple(data.get("operands", (0,)))
        results = tuple(data.get("results", (0,) * len(positions)))
        if len(results) != len(positions):
            raise GraphError(
                f"{caller}: the edge {maker} -> {key} has {len(positions)} operands, {len(results)} results"
            )
        for position, result in zip(positions, results, strict=True):
            if position in at:
                raise GraphError(f"{caller}: {_place(dag, key)} has two operands {position}")
            if (maker, result) not in values:
                raise GraphError(
                    f"{caller}: {_place(dag, key)} reads result {result} of {_place(dag, maker)}, which has no such "
                    "result"
                )
            at[position] = values[maker, result]
    if sorted(at) != list(range(len(at))):
        raise GraphError(f"{caller}: {_place(dag, key)} has operands at the positions {sorted(at)}; one is missing")
    return tuple(at[i] for i in range(len(at)))


def _check_arguments(
    dag: nx.DiGraph, key: int, op: Op, operands: tuple[Any, ...], attrs: Mapping[str, Any], caller: str
) -> None:
    """Refuse the wrong number of operands, and attributes that the op does not have."""
    if len(operands) != len(op.inputs):
        raise GraphError(
            f"{caller}: {_place(dag, key)} has {len(operands)} operands; {op.name} takes {len(op.inputs)}: "
            f"{', '.join(op.inputs) or 'none'}"
        )
    if set(attrs) - set(op.attrs):
        raise GraphError(
            f"{caller}: {_place(dag, key)} has the attributes {sorted(attrs)}; {op.name} takes "
            f"{', '.join(op.attrs) or 'none'}"
        )


def _specs(
    dag: nx.DiGraph, key: int, op: Op, operands: tuple[Any, ...], attrs: Mapping[str, Any], given: Any, caller: str
) -> tuple[Spec, ...]:
    """The specs of a node's results, those that it has if they are right."""
    if op.literal or op.spec is None:
        return given
    asked = [spec_of(x) for x in operands]
    try:
        derived = out_specs(op.spec(*asked, **attrs))
    except (TwingradError, TypeError, ValueError, KeyError, IndexError, AttributeError) as error:
        raise GraphError(f"{caller}: {_place(dag, key)} cannot be applied to {_told(asked)}: {error}") from None
    if op.kind == "elementwise" and not op.attrs:
        wanted = operand_dtypes(op, asked)
        if any(type(x) is Value and x.dtype != dtype for x, dtype in zip(operands, wanted, strict=True)):
            raise GraphError(
                f"{caller}: {_place(dag, key)} computes in {wanted[0].name}, and has operands {_told(asked)}: convert "
                "them with nodes 'to'"
            )
    if given is None:
        return derived
    if [_form(spec) for spec in given] != [_form(spec) for spec in derived]:
        raise GraphError(f"{caller}: {_place(dag, key)} has specs {_told(given)}; its operands give {_told(derived)}")
    return tuple(given)


def _form(spec: Spec) -> Any:
    return [hint(n) for n in spec.shape], np.dtype(spec.dtype)


def _told(specs: Any) -> str:
    return ", ".join(map(str, specs)) or "nothing"


def _place(dag: nx.DiGraph, key: int) -> str:
    """A node, in words."""
    data = dag.nodes[key]
    file, line, _ = data.get("source", NOWHERE)
    return f"%{key} ({data.get('op')}{f' at {file}:{line}' if line else ''})"
