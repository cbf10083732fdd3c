"""A graph as plain data (JSON) and back: attributes hold nothing else, so nothing is lost.

Dims are written as their polynomials. A loaded graph has fresh Dims whose hints are those of the trace; guards
are not part of a graph.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from common.core.dtypes import SUPPORTED
from common.core.errors import ArgumentError
from common.core.op import REGISTRY, Op
from common.core.sizes import Dim, DimScope
from common.core.spec import Spec
from common.tools.files.strict_json import parsed
from static.graph.nodes import Effect, Graph, Node, Value
from static.graph.regions import CONTROL
from static.graph.side_effects import ACTS

OWN = {**CONTROL, **ACTS}
"""Ops that are not in the registry."""
FORMAT = 1
"""Version of the data; `load` refuses others."""


def dump(graph: Graph) -> str:
    """The graph as JSON text.

    Raises
    ------
    ArgumentError : an attribute that is not plain data.
    """
    return json.dumps({"format": FORMAT, "graph": to_data(graph)})


def load(text: str) -> Graph:
    """The graph that `dump` wrote.

    Raises
    ------
    ArgumentError : another format, or an op that is not registered.
    """
    data = parsed(text)
    if data.get("format") != FORMAT:
        raise ArgumentError(f"a graph of format {data.get('format')} cannot be read; this version reads {FORMAT}")
    return GraphReader().graph(data["graph"])


def to_data(graph: Graph) -> dict[str, Any]:
    """A graph as what JSON can hold."""
    return {
        "inputs": [v.key for v in graph.inputs],
        "nodes": [_node(node) for node in graph.nodes],
        "outputs": [v.key for v in graph.outputs],
        "effects": [[e.state.key, e.value.key] for e in graph.effects],
    }


def _node(node: Node) -> dict[str, Any]:
    return {
        "id": node.id,
        "op": None if node.op is None else node.op.name,
        "operands": [{"value": x.key} if type(x) is Value else {"number": plain(x)} for x in node.operands],
        "attrs": {name: plain(x) for name, x in node.attrs.items()},
        "specs": [[plain(v.spec.shape), v.spec.dtype.str, v.spec.weak] for v in node.outputs],
        "source": node.source,
        "scope": node.scope,
    }


def plain(x: Any) -> Any:
    """A value as JSON: what JSON has no word for is a dict with one key."""
    if x is None or isinstance(x, (bool, int, str)):
        return x
    if isinstance(x, float):
        return {"float": x.hex()}
    if isinstance(x, tuple):
        return {"tuple": [plain(v) for v in x]}
    if isinstance(x, Dim):
        return {"dim": [listed(x.terms), x.hint]}
    if isinstance(x, np.dtype):
        return {"dtype": x.str}
    if isinstance(x, Graph):
        return {"graph": to_data(x)}
    raise ArgumentError(f"an attribute of type {type(x).__name__} is not plain data")


def listed(x: Any) -> Any:
    """Nested tuples as lists."""
    return [listed(v) for v in x] if isinstance(x, tuple) else x


def tupled(x: Any) -> Any:
    """Nested lists as tuples."""
    return tuple(tupled(v) for v in x) if isinstance(x, list) else x


class GraphReader:
    """Builds a graph from data; all its Dims share a scope."""

    def __init__(self) -> None:
        self.scope = DimScope(_no_number, _no_number)

    def graph(self, data: dict[str, Any]) -> Graph:
        """The graph of data."""
        values: dict[tuple[int, int], Value] = {}
        nodes = []
        for record in data["nodes"]:
            node = self._node(record, values)
            nodes.append(node)
            values.update((v.key, v) for v in node.outputs)
        effects = [Effect(values[tuple(state)], values[tuple(value)]) for state, value in data["effects"]]
        inputs, outputs = ([values[tuple(key)] for key in data[part]] for part in ("inputs", "outputs"))
        return Graph(inputs, nodes, outputs, effects)

    def _node(self, record: dict[str, Any], values: dict[tuple[int, int], Value]) -> Node:
        name = record["op"]
        if name is not None and name not in REGISTRY and name not in OWN:
            raise ArgumentError(f"the graph uses the op {name!r}, which is not registered")
        operands = tuple(
            values[tuple(x["value"])] if "value" in x else self.read(x["number"]) for x in record["operands"]
        )
        attrs = {key: self.read(x) for key, x in record["attrs"].items()}
        specs = [Spec(tuple(self.read(shape)), _dtype(dtype), weak) for shape, dtype, weak in record["specs"]]
        op = None if name is None else OWN.get(name) or REGISTRY[name]
        if isinstance(op, Op) and (len(operands) != len(op.inputs) or not attrs.keys() <= set(op.attrs)):
            raise ArgumentError(
                f"%{record['id']} has {len(operands)} operands, and the attributes {list(attrs)}; "
                f"{op.name} takes {len(op.inputs)}, and {list(op.attrs)}"
            )
        file, line, function = record["source"]
        if type(record["id"]) is not int or not (isinstance(file, str) and type(line) is int):
            raise ArgumentError(f"the node {record['id']!r} has no number, or no place")
        return Node(record["id"], op, operands, attrs, specs, (file, line, function), record["scope"])

    def read(self, x: Any) -> Any:
        """The value that `plain` wrote."""
        if not isinstance(x, dict):
            return x
        ((kind, value),) = x.items()
        if kind == "float":
            return float.fromhex(value)
        if kind == "tuple":
            return tuple(self.read(v) for v in value)
        if kind == "dim":
            return Dim(tupled(value[0]), value[1], self.scope)
        return _dtype(value) if kind == "dtype" else self.graph(value)


def _dtype(name: Any) -> np.dtype:
    """The dtype of a name.

    Raises
    ------
    ArgumentError : no op takes it.
    """
    found = np.dtype(name) if isinstance(name, str) else None
    if found not in SUPPORTED:
        raise ArgumentError(f"the graph uses the dtype {name!r}, which no op takes")
    return found


def _no_number(dim: Dim) -> Any:
    raise ArgumentError(f"the size {dim!r} of a loaded graph is not part of a trace")
