"""Indices of whole rows, as `scatter`, `gather` and `x[i[:, None], arange(n)]` spell them: one index per row."""

from __future__ import annotations

from typing import Any

from common.core.op import Op
from common.core.sizes import same, same_shape
from common.core.spec import Spec
from common.ops.create.creation import arange_
from common.ops.index.coordinates import family
from common.ops.shape.view import expand_, reshape_
from static.graph import Graph, Node, Value, derived_id, rebuild


def whole_rows(graph: Graph) -> Graph:
    """x[i.expand(m, n), arange(n)] -> x[i], where n is the size of the last dimension that is indexed; writes, too.

    ``scatter_add(0, i[:, None].expand(m, n), v)`` looks up one index per element; what is left looks up one per row,
    and a row goes by vectors. Elements are written in the same order.
    """
    nodes: list[Node] = []
    replace: dict[tuple[int, int], Any] = {}
    for node in graph.nodes:
        last = node
        while (found := _by_rows(last)) is not None:
            nodes += found[:-1]
            last = found[-1]
        nodes.append(last)
        if last is not node:
            replace[node.outputs[0].key] = last.outputs[0]
    return rebuild(graph, nodes, replace) if replace else graph


def _by_rows(node: Node) -> list[Node] | None:
    """The nodes in the place of one whose last index counts the elements of a row; None if it does not."""
    op = node.op
    if op is None or not op.name.startswith("index_") or not op.name[-1].isdigit():
        return None
    name, k = op.name[:-1], int(op.name[-1])
    before = len(node.operands) - k
    if k < 2 or not before:  # without operands it is about indices, not about elements
        return None
    *others, last = node.operands[before:]
    extents = node.attrs["extents"] if "extents" in node.attrs else node.operands[0].shape[node.attrs["dim"] :]
    if not _counts(last, extents[k - 1]) or not all(_is_column(i, extents[k - 1]) for i in others):
        return None
    made: list[Node] = []

    def add(op: Op, operands: tuple[Any, ...], attrs: dict[str, Any], specs: list[Spec]) -> Value:
        made.append(Node(derived_id(node.id, k, len(made)), op, operands, attrs, specs, node.source, node.scope))
        return made[-1].outputs[0]

    indices = []
    for i in others:
        source, wanted = _expanded(i), i.shape[:-1]
        shape = (*(1,) * (len(i.shape) - len(source.shape)), *source.shape[:-1])
        i = add(reshape_, (source,), {"new_shape": shape}, [Spec(shape, i.dtype)])
        if not same_shape(shape, wanted):
            i = add(expand_, (i,), {"new_shape": wanted}, [Spec(wanted, i.dtype)])
        indices.append(i)
    attrs = dict(node.attrs)
    if "extents" in attrs:
        attrs["extents"] = attrs["extents"][:-1]
    operands = (*node.operands[:before], *indices)
    add(family(k - 1)[name], operands, attrs, [value.spec for value in node.outputs])
    return made


def _expanded(index: Value) -> Value:
    """What an index is expanded from, itself if it is not."""
    source = index.node.operands[0] if index.node.op is expand_ else index
    assert type(source) is Value
    return source


def _is_column(index: Any, extent: Any) -> bool:
    """Whether an index is the same for all elements of a row."""
    if type(index) is not Value:
        return False
    own, wide = _expanded(index).shape[-1:], index.shape[-1:]
    return bool(own) and _is_one(own[0]) and (_is_one(wide[0]) or same(wide[0], extent))


def _is_one(size: Any) -> bool:
    return type(size) is int and size == 1


def _counts(index: Any, extent: Any) -> bool:
    """Whether an index counts all elements of a dimension."""
    if type(index) is not Value or index.node.op is not arange_:
        return False
    attrs = index.node.attrs
    return attrs["start"] == 0 and attrs["step"] == 1 and same(attrs["count"], extent)
