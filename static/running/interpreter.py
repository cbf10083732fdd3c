"""Running a graph node by node with the eager kernels: oracle, debugger, and fallback. Same bits as compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from common.core.dtypes import number_spec, operand_dtypes
from common.core.op import Op
from common.core.sizes import resolve
from common.evaluate.kinds import number
from common.evaluate.specialise import run
from static.graph import Graph, Node, Value
from static.graph.regions import LoopParts, NeedsRoom, branches
from static.graph.side_effects import Mismatch
from static.running.overlaps import Overlaps
from static.running.python_calls import journal

T = TypeVar("T")
Watch = Callable[[Node, Sequence[Any], tuple[Any, ...]], None]
"""Called after each node with its operands and its results."""


def interpret(
    graph: Graph, arrays: Sequence[np.ndarray], env: Mapping[Any, int], watch: Watch | None = None
) -> list[np.ndarray]:
    """Run `graph` on arrays, in the order of its inputs.

    Parameters
    ----------
    env : values of the dimension atoms, see `common.core.sizes`.
    watch : told of every node that has run.

    Returns
    -------
    The outputs, none of them sharing memory with another or with an input; effects are written to the state's
    arrays after everything has been computed.
    """
    return finish(graph, evaluate(graph, arrays, env, watch))


def evaluate(
    graph: Graph, arrays: Sequence[np.ndarray], env: Mapping[Any, int], watch: Watch | None = None
) -> dict[tuple[int, int], Any]:
    """Every value of a graph, by its key."""
    values: dict[tuple[int, int], Any] = {v.key: x for v, x in zip(graph.inputs, arrays, strict=True)}
    for node in graph.nodes:
        if node.op is not None:
            results = run_node(node, values, env, watch)
            for value, result in zip(node.outputs, results, strict=True):
                values[value.key] = result
            if watch is not None:
                watch(node, operands_of(node, values), results)
    return values


def finish(graph: Graph, values: Mapping[tuple[int, int], Any]) -> list[np.ndarray]:
    """The outputs of a graph, after its effects."""
    outputs = [np.array(values[v.key], order="C") for v in graph.outputs]
    writes = [(values[e.state.key], np.array(values[e.value.key])) for e in graph.effects]
    for target, new in writes:
        np.copyto(target, new)
    return outputs


def with_room(run: Callable[[Mapping[Any, int]], T], env: Mapping[Any, int]) -> T:
    """Call ``run(env)`` with as much room for loops as it needs."""
    sizes = dict(env)
    while True:
        try:
            return run(sizes)
        except NeedsRoom as need:
            sizes[need.atom] *= 4


class Interpreted:
    """A graph for concrete sizes, as a plan that is interpreted; called as a compiled one."""

    def __init__(self, graph: Graph, env: Mapping[Any, int], overlaps: Overlaps | None = None) -> None:
        self.graph, self.env, self._overlaps = graph, dict(env), overlaps or Overlaps()
        positions = {value.key: i for i, value in enumerate(graph.inputs)}
        self._written = [positions[effect.state.key] for effect in graph.effects]

    def __call__(self, *arrays: Any) -> list[np.ndarray]:
        """The outputs for arrays, in the order of the graph's inputs."""
        self._overlaps.check(arrays, self._written)
        found: list[np.ndarray] = journal.during(
            lambda: interpret(self.graph, [np.asarray(x) for x in arrays], self.env)
        )
        return found


def run_node(
    node: Node, values: Mapping[tuple[int, int], Any], env: Mapping[Any, int], watch: Watch | None = None
) -> tuple[Any, ...]:
    """The results of one node for the values made so far; `watch` is told of the nodes of its regions."""
    op = node.op
    assert op is not None
    if op.kind == "control":
        return run_control(node, [values[x.key] for x in node.values], env, watch)
    if op.kind == "act":
        return run_act(node, operands_of(node, values), env)
    attrs = {name: resolve(value, env) for name, value in node.attrs.items()}
    if op.literal:
        spec = node.outputs[0].spec
        return (number(attrs["value"], spec.dtype),)
    operands = operands_of(node, values)
    result = run(op, operands, attrs)
    results = result if isinstance(result, tuple) else (result,)
    return tuple(np.asarray(r) for r in results)


def run_act(node: Node, operands: Sequence[Any], env: Mapping[Any, int]) -> tuple[np.ndarray, ...]:
    """Do what a node does; the results are those of a callback.

    Raises
    ------
    Mismatch : the program is not the one for these values.
    CheckError : what the program asserts does not hold.
    """
    if node.name == "callback":
        call, forms = node.attrs["call"], [(resolve(tuple(v.shape), env), v.dtype) for v in node.outputs]
        return tuple(journal.call(call, operands, forms)) or (np.zeros((), np.int64),)
    if node.name != "expect":
        journal.act(node.name, operands, node.attrs)
        return (np.zeros((), np.int64),)
    bits = int(np.asarray(operands[0]).view(np.int64))
    if bits != node.attrs["bits"]:
        raise Mismatch(node.attrs["decision"], bits)
    return (np.zeros((), np.int64),)


def operands_of(node: Node, values: Mapping[tuple[int, int], Any]) -> list[Any]:
    """The operands of a node as arrays, numbers in the dtype in which it computes."""
    assert node.op is not None
    return [_operand(node.op, node, i, x, values) for i, x in enumerate(node.operands)]


def _operand(op: Op, node: Node, position: int, x: Any, values: Mapping[tuple[int, int], Any]) -> Any:
    """An operand as an array; numbers of elementwise ops rounded to the dtype in which the node computes."""
    if type(x) is Value:
        return values[x.key]
    if op.kind != "elementwise":
        return x
    specs = [y.spec if type(y) is Value else number_spec(y) for y in node.operands]
    return number(x, operand_dtypes(op, specs)[position])


def run_control(
    node: Node, operands: list[np.ndarray], env: Mapping[Any, int], watch: Watch | None = None
) -> tuple[np.ndarray, ...]:
    """The results of a node with regions.

    Raises
    ------
    NeedsRoom : a loop needs more iterations than there is room for.
    """
    if node.name == "switch":
        region, uses = branches(node)[int(operands[0])]
        return tuple(interpret(region, [operands[1 + i] for i in uses], env, watch))
    parts = LoopParts(node)
    carried = [operands[i] for i in parts.carried]
    constants, tests = [operands[i] for i in parts.constants], [operands[i] for i in parts.tests]
    length = resolve(parts.length, env)
    count = int(operands[0]) if parts.counted else None if parts.condition is not None else length
    shapes = [(length, *(resolve(n, env) for n in parts.body.outputs[i].shape)) for i in parts.stacked]
    stacks = [np.zeros(shape, parts.body.outputs[i].dtype) for shape, i in zip(shapes, parts.stacked)]
    done = 0
    while True:
        if count is None:
            assert parts.condition is not None
            if not interpret(parts.condition, [*carried, *tests], env, watch)[0]:
                break
            if stacks and done >= length:
                raise NeedsRoom(parts.room)
        elif done == count:
            break
        row = count - 1 - done if parts.backwards and count is not None else done
        rows = [operands[i][row] for i in parts.rows]
        results = interpret(parts.body, [*carried, *rows, *constants], env, watch)
        carried = results[: parts.n]
        for stack, y in zip(stacks, results[parts.n :], strict=True):
            stack[row] = y
        done += 1
    return (*carried, *stacks, *([np.array(done)] if parts.condition is not None else []))
