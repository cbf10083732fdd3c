"""Elements of a short dimension, computed apart: coordinates of points, edges of boxes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from common.core.sizes import same
from common.core.spec import Spec
from static.graph import Graph, Node, Value, derived_id, rebuild

MOST = 8
"""Elements of a dimension that is taken apart."""


def take_apart(graph: Graph) -> Graph:
    """f(x, y)[..., 0], f(x, y)[..., 1] -> f(x[..., 0], y[..., 0]), f(x[..., 1], y[..., 1]), if nothing else reads f.

    So no array of pairs is written and read again. Nothing is computed twice: no two parts have an element in common.
    """
    users: dict[tuple[int, int], list[Node]] = {}
    for node in graph.nodes:
        for value in node.values:
            users.setdefault(value.key, []).append(node)
    bound = {value.key for value in graph.results}
    replace: dict[tuple[int, int], Any] = {}
    made: list[list[Node]] = []
    gone: set[int] = set()
    for node in reversed(graph.nodes):
        parts = [] if node.id in gone else _parts(node, users, bound)
        own: list[Node] = [] if node.id in gone else [node]
        for part in parts:
            operands = []
            for i, x in enumerate(node.operands):
                if type(x) is Value and (taken := _taken(x, node, part, derived_id(part.id, i))) is not None:
                    own.append(taken)
                    users.setdefault(x.key, []).append(taken)
                    x = taken.outputs[0]
                operands.append(x)
            spec = Spec(part.outputs[0].shape, node.outputs[0].dtype, part.outputs[0].spec.weak)
            own.append(
                Node(derived_id(part.id, -1), node.op, tuple(operands), node.attrs, [spec], node.source, node.scope)
            )
            replace[part.outputs[0].key] = own[-1].outputs[0]
            gone.add(part.id)
        if parts:
            own.remove(node)
            for x in node.values:
                users[x.key] = [user for user in users[x.key] if user is not node]
        made.append(own)
    if not gone:
        return graph
    return rebuild(graph, [node for own in reversed(made) for node in own if node.id not in gone], replace)


def _parts(node: Node, users: dict[tuple[int, int], list[Node]], bound: set[tuple[int, int]]) -> Sequence[Node]:
    """The views of a result of which each has another element of one dimension; none if something else reads it."""
    if node.op is None or node.op.kind != "elementwise" or len(node.outputs) != 1:
        return []
    (value,) = node.outputs
    found = users.get(value.key, [])
    if value.key in bound or not 0 < len(found) <= MOST or not all(_is_part(user, value) for user in found):
        return []
    starts = [user.attrs["starts"] for user in found]
    moved = {_moved(user, value) for user in found}
    return found if len(moved) == 1 and len(set(starts)) == len(starts) else []


def _is_part(user: Node, value: Value) -> bool:
    """Whether a node reads one element of one dimension, and all of the others."""
    if user.op is None or user.op.parts != "part" or set(user.attrs) != {"starts", "sizes", "steps", "dims"}:
        return False
    starts, sizes, steps, dims = (user.attrs[name] for name in ("starts", "sizes", "steps", "dims"))
    apart = _moved(user, value)
    if len(apart) != 1 or None in dims or any(step != 1 for step in steps):
        return False
    whole = all(type(start) is int and (start == 0 or i in apart) for i, start in enumerate(starts))
    return whole and all(type(sizes[i]) is int and sizes[i] == 1 for i in apart)


def _moved(user: Node, value: Value) -> tuple[int, ...]:
    """The dimensions of which a view has not all elements."""
    sizes = zip(value.shape, user.attrs["sizes"], strict=True)
    return tuple(i for i, (n, size) in enumerate(sizes) if not same(n, size))


def _taken(x: Value, node: Node, part: Node, number: int) -> Node | None:
    """The part of an operand that a part of the result is computed of; None if that is all of it."""
    (value,) = node.outputs
    first = len(value.shape) - len(x.shape)
    starts, sizes, dims = list[Any](), list[Any](), []
    for i, n in enumerate(x.shape):
        whole = same(part.attrs["sizes"][first + i], value.shape[first + i]) or (type(n) is int and n == 1)
        starts.append(0 if whole else part.attrs["starts"][first + i])
        sizes.append(n if whole else 1)
    dims = [d - first for d in part.attrs["dims"] if d >= first]
    if len(dims) == len(x.shape) and starts == [0] * len(starts) and all(map(same, sizes, x.shape)):
        return None
    attrs = {"starts": tuple(starts), "sizes": tuple(sizes), "steps": (1,) * len(sizes), "dims": tuple(dims)}
    spec = Spec(tuple(sizes[d] for d in dims), x.dtype, x.spec.weak)
    return Node(number, part.op, (x,), attrs, [spec], part.source, part.scope)
