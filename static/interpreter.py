"""Running a graph node by node with the eager kernels: oracle, debugger, and fallback. Same bits as compiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from common.dim import resolve
from common.dtypes import number_spec, operand_dtypes
from common.eager import run
from common.eager_kinds import number
from common.op import Op
from static.graph import Graph, Node, Value


def interpret(graph: Graph, arrays: Sequence[np.ndarray], env: Mapping[Any, int]) -> list[np.ndarray]:
    """Run `graph` on arrays, in the order of its inputs.

    Parameters
    ----------
    env : values of the dimension atoms, see `common.dim`.

    Returns
    -------
    The outputs, none of them sharing memory with another or with an input; effects are written to the state's
    arrays after everything has been computed.
    """
    return finish(graph, evaluate(graph, arrays, env))


def evaluate(graph: Graph, arrays: Sequence[np.ndarray], env: Mapping[Any, int]) -> dict[tuple[int, int], Any]:
    """Every value of a graph, by its key."""
    values: dict[tuple[int, int], Any] = {v.key: x for v, x in zip(graph.inputs, arrays, strict=True)}
    for node in graph.nodes:
        if node.op is not None:
            results = _run_node(node, values, env)
            for value, result in zip(node.outputs, results, strict=True):
                values[value.key] = result
    return values


def finish(graph: Graph, values: Mapping[tuple[int, int], Any]) -> list[np.ndarray]:
    """The outputs of a graph, after its effects."""
    outputs = [np.array(values[v.key], order="C") for v in graph.outputs]
    writes = [(values[e.state.key], np.array(values[e.value.key])) for e in graph.effects]
    for target, new in writes:
        np.copyto(target, new)
    return outputs


def _run_node(node: Node, values: Mapping[tuple[int, int], Any], env: Mapping[Any, int]) -> tuple[Any, ...]:
    op = node.op
    assert op is not None
    attrs = {name: resolve(value, env) for name, value in node.attrs.items()}
    if op.name == "constant":
        spec = node.outputs[0].spec
        return (number(attrs["value"], spec.dtype),)
    operands = [_operand(op, node, i, x, values) for i, x in enumerate(node.operands)]
    result = run(op, operands, attrs)
    results = result if isinstance(result, tuple) else (result,)
    return tuple(np.asarray(r) for r in results)


def _operand(op: Op, node: Node, position: int, x: Any, values: Mapping[tuple[int, int], Any]) -> Any:
    """An operand as an array; numbers of elementwise ops rounded to the dtype in which the node computes."""
    if type(x) is Value:
        return values[x.key]
    if op.kind != "elementwise":
        return x
    specs = [y.spec if type(y) is Value else number_spec(y) for y in node.operands]
    return number(x, operand_dtypes(op, specs)[position])
