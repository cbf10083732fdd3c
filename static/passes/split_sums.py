"""Sums over the iterations of a loop, of parts of an array: gradients of elements that the body reads one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, count
from typing import Any

from common.core.op import ADD
from common.core.sizes import same_shape
from common.core.spec import Spec
from common.ops.shape.view import reshape_
from static.graph import Graph, Node, Value, derived_id
from static.graph.nodes import Effect
from static.graph.region_edit import LoopEdit

MOST = 16
"""Parts of a sum that is split."""

Where = tuple[tuple[Any, ...], ...]
"""Starts and sizes of a part."""


def split_sums(graph: Graph) -> Graph:
    """s += pad(a, 0) + pad(b, 1) in a loop -> r += a, t += b, and behind it pad(r, 0) + pad(t, 1).

    So the gradient of a loop over numbers is one, although ``p[0] * x + p[1]`` reads an array. A sum from +0.0 on is
    never -0.0, whatever the signs of the zeros that are added: it needs none of those around the parts.
    """
    if not any("sums" in node.attrs for node in graph.nodes):
        return graph
    nodes, new = list[Node](), dict[tuple[int, int], Value]()
    for old in graph.nodes:
        operands = tuple(new[x.key] if type(x) is Value else x for x in old.operands)
        node = Node(old.id, old.op, operands, old.attrs, (x.spec for x in old.outputs), old.source, old.scope)
        own, results = _split(node) if "sums" in node.attrs else ([node], node.outputs)
        nodes += own
        new.update(zip((x.key for x in old.outputs), results, strict=True))
    if len(nodes) == len(graph.nodes):
        return graph
    effects = [Effect(new[e.state.key], new[e.value.key]) for e in graph.effects]
    return Graph([new[x.key] for x in graph.inputs], nodes, [new[x.key] for x in graph.outputs], effects)


def _split(node: Node) -> tuple[list[Node], Sequence[Value]]:
    """What stands in a loop's place: zeros, the loop, and its sums put together; and its results."""
    edit, body = LoopEdit(node), node.attrs["body"]
    parts = {k: _parts(body.outputs[k].node.operands[1]) for k in range(*node.attrs["sums"])}
    if edit.parts.condition is not None or not any(parts.values()):
        return [node], node.outputs
    before, inside, behind, carried = list[Node](), list[Node](), list[Node](), list[list[Any]]()
    for k, entry in enumerate(edit.carried):
        zero, _, result, *_ = entry
        ids, add = _ids(result.node), result.node
        for where, leaf in parts.get(k, {}).items():
            spec = leaf.operands[0].spec
            begin = Node(next(ids), zero.node.op, (), {**zero.node.attrs, "shape": spec.shape}, [spec], add.source)
            given = Node(-next(ids), None, (), {"name": "total"}, [spec], add.source).outputs[0]
            value = _only(add.operands[1], where, spec.shape, ids, inside)
            inside.append(Node(next(ids), add.op, (given, value), add.attrs, [spec], add.source))
            carried.append([begin.outputs[0], given, inside[-1].outputs[0], None, (k, where)])
            before.append(begin)
        if not parts.get(k):
            carried.append(entry)
    edit.carried = carried
    edit.parts.body = Graph(body.inputs, [*body.nodes, *inside], body.outputs, body.effects)
    made, found = edit.build()
    places: Mapping[Any, int] = found
    results = []
    for k, old in enumerate(node.outputs):
        ids, add = _ids(body.outputs[k].node, 1), body.outputs[k].node
        wholes = list[Value]()
        for where, leaf in parts.get(k, {}).items():
            part = made.outputs[places[k, where]]
            behind.append(Node(next(ids), leaf.op, (part,), leaf.attrs, [old.spec], leaf.source))
            wholes.append(behind[-1].outputs[0])
            if len(wholes) == 2:
                behind.append(Node(next(ids), add.op, tuple(wholes), add.attrs, [old.spec], add.source))
                wholes = [behind[-1].outputs[0]]
        results.append(wholes[0] if wholes else made.outputs[places[k]])
    return [*before, made, *behind], results


def _ids(add: Node, *of: int) -> Iterator[int]:
    """Numbers of what stands in the place of a sum."""
    return (derived_id(add.id, *of, i) for i in count())


def _parts(value: Value) -> dict[Where, Node]:
    """The parts that a value is a sum of, each place once; empty if it is no such sum."""
    found = dict[Where, Node]()
    for leaf in _leaves(value):
        if leaf.op is None or leaf.op.parts != "pad" or set(leaf.attrs) != {"shape", "starts", "sizes", "steps"}:
            return {}
        if any(step != 1 for step in leaf.attrs["steps"]):
            return {}
        found.setdefault(_where(leaf), leaf)
    apart = len(found) <= MOST and all(_apart(a, b) for a, b in combinations(found, 2))
    return found if apart else {}


def _leaves(value: Value) -> Iterator[Node]:
    node = value.node
    if node.name != ADD:
        yield node
        return
    for x in node.operands:
        if type(x) is Value and x.shape == value.shape:
            yield from _leaves(x)
        else:
            yield Node(-1, None, (), {}, [], node.source)  # a number, or a row for all: no part


def _where(leaf: Node) -> Where:
    return leaf.attrs["starts"], leaf.attrs["sizes"]


def _apart(a: Where, b: Where) -> bool:
    """Whether no element is in both parts, for all that their numbers say."""
    for start, size, other, length in zip(*a, *b, strict=True):
        known = all(type(n) is int for n in (start, size, other, length))
        if known and (start + size <= other or other + length <= start):
            return True
    return False


def _only(value: Value, where: Where, shape: tuple[Any, ...], ids: Iterator[int], made: list[Node]) -> Any:
    """The sum of those leaves of a value that lie in one place, under a shape; None if there are none."""
    node = value.node
    if node.name != ADD:
        return _under(node.operands[0], shape, ids, made) if _where(node) == where else None
    found = [x for x in (_only(y, where, shape, ids, made) for y in node.operands) if x is not None]
    if len(found) < 2:
        return found[0] if found else None
    made.append(Node(next(ids), node.op, tuple(found), node.attrs, [found[0].spec], node.source, node.scope))
    return made[-1].outputs[0]


def _under(x: Value, shape: tuple[Any, ...], ids: Iterator[int], made: list[Node]) -> Value:
    """A leaf under a shape: one is the gradient of ``a[0]``, another that of ``a[0:1]``."""
    if same_shape(x.shape, shape):
        return x
    spec = Spec(shape, x.dtype, x.spec.weak)
    made.append(Node(next(ids), reshape_, (x,), {"new_shape": shape}, [spec], x.node.source, x.node.scope))
    return made[-1].outputs[0]


__all__ = ["split_sums"]
