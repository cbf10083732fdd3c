"""Triangles of matrices as choices between elements and zeros, which share a kernel with what is around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from common.core.op import ADD, CHOOSE, LESS, REGISTRY, Op
from common.core.spec import Spec
from common.ops.create.creation import arange_, full_
from common.ops.shape.diagonal import tril_, triu_
from common.ops.shape.view import reshape_
from static.graph import Graph, Node, Value, derived_id, rebuild
from static.graph.elements import is_elementwise

FARTHEST = 1 << 32
"""Columns between a border and the main diagonal that are added to numbers of rows without overflow."""


def mask_triangles(graph: Graph) -> Graph:
    """tril(x, d) -> where(arange(m)[:, None] + d < arange(n), 0, x);  tril(x, d)[..., i, j] -> x[..., i, j] or 0.

    The masks depend on sizes only, so a plan makes them once. The kernel of `tril` goes row by row, which takes long
    where rows have a few elements; it stays for single matrices with no elementwise function beside it.
    """
    if not any(map(_is_triangle, graph.nodes)):
        return graph
    users = graph.users()
    nodes: list[Node] = []
    replace: dict[tuple[int, int], Any] = {}
    for node in graph.nodes:
        made = _masked(node, users.get(node.outputs[0].key, [])) if _is_triangle(node) else _element(node)
        if made is not None:
            nodes += made
            replace[node.outputs[0].key] = made[-1].outputs[0]
        nodes += [node] if made is None else []
    return rebuild(graph, nodes, replace) if replace else graph


def _is_triangle(node: Node) -> bool:
    return node.op in (tril_, triu_) and type(_offset(node)) is int and abs(_offset(node)) < FARTHEST


def _masked(node: Node, users: Sequence[Node]) -> list[Node] | None:
    (x,), made = node.operands, list[Node]()
    if type(x) is not Value or (len(x.shape) == 2 and not any(map(is_elementwise, (x.node, *users)))):
        return None

    def new(op: Op, operands: tuple[Any, ...], attrs: dict[str, Any], shape: tuple[Any, ...], dtype: Any) -> Value:
        spec = Spec(shape, np.dtype(dtype))
        made.append(Node(derived_id(node.id, len(made)), op, operands, attrs, [spec], node.source, node.scope))
        return made[-1].outputs[0]

    m, n = x.shape[-2:]
    rows, columns = (new(arange_, (), {"start": 0, "step": 1, "count": k}, (k,), np.int64) for k in (m, n))
    rows = new(reshape_, (rows,), {"new_shape": (m, 1)}, (m, 1), np.int64)
    if (offset := _offset(node)) != 0:
        rows = new(REGISTRY[ADD], (rows, offset), {}, (m, 1), np.int64)
    compared = (rows, columns) if node.op is tril_ else (columns, rows)
    outside = new(REGISTRY[LESS], compared, {}, (m, n), np.bool_)
    new(REGISTRY[CHOOSE], (outside, _zero(x.dtype), x), {}, x.shape, x.dtype)
    return made


def _element(node: Node) -> list[Node] | None:
    """One element of each of the matrices: of those that the triangle is of, or zero; None if it is something else."""
    if node.op is None or node.op.parts != "part" or type(x := node.operands[0]) is not Value:
        return None
    if not _is_triangle(x.node) or set(node.attrs) != {"starts", "sizes", "steps", "dims"}:
        return None
    starts, sizes = node.attrs["starts"][-2:], node.attrs["sizes"][-2:]
    if any(type(k) is not int for k in (*starts, *sizes)) or sizes != (1, 1):
        return None
    (row, column), (out,), number = starts, node.outputs, derived_id(node.id, 0)
    beside = column - row - _offset(x.node)
    if beside <= 0 if x.node.op is tril_ else beside >= 0:
        return [Node(number, node.op, x.node.operands, node.attrs, [out.spec], node.source, node.scope)]
    attrs = {"shape": out.shape, "value": _zero(out.dtype), "dtype": out.dtype}
    return [Node(number, full_, (), attrs, [out.spec], node.source, node.scope)]


def _offset(triangle: Node) -> Any:
    """By how many columns the border lies to the right of the main diagonal."""
    (offset,) = triangle.attrs.values()
    return offset


def _zero(dtype: np.dtype[Any]) -> Any:
    return dtype.type(0).item()
