"""Views of any strides, and writes to chains of views, in ONNX: elements that are taken or placed by number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from common.core.errors import ArgumentError
from common.ops.shape.view_scatter import placed
from common.tensor.view_families import Path
from static.export.onnx_ops import Writer, rule
from static.export.onnx_places import INT, zeros
from static.graph import Node

Place = tuple[Any, Sequence[Any], Sequence[Any]]
"""Offset, shape and strides, in elements of a contiguous array; see `common.core.op.Op.strided`."""


def _numbers(w: Writer, place: Place) -> str:
    """The number of each element of a view in its base."""
    offset, shape, strides = place
    total = w.add("Expand", [w.scalar(offset, INT), w.sizes([1] * len(shape))])
    for d, (n, stride) in enumerate(zip(shape, strides, strict=True)):
        along = w.add("Range", [w.scalar(0, INT), w.scalar(n, INT), w.scalar(1, INT)])
        steps = w.add("Mul", [along, w.scalar(stride, INT)])
        upright = w.sizes([n if i == d else 1 for i in range(len(shape))])
        total = w.add("Add", [total, w.add("Reshape", [steps, upright], allowzero=1)])
    return str(total)


def _flat(w: Writer, x: str) -> str:
    return str(w.add("Reshape", [x, w.constant(np.array([-1], INT))]))


def _into(w: Writer, node: Node, x: str, v: str, place: Place) -> str:
    """x with v in the place of a view."""
    made = w.add("ScatterElements", [_flat(w, x), _flat(w, _numbers(w, place)), _flat(w, v)], axis=0)
    return str(w.add("Reshape", [made, w.sizes(node.outputs[0].shape)], allowzero=1))


def _of_view(name: str, attrs: Any, shape: Sequence[Any]) -> Place:
    path: Path = ((name, tuple(attrs.items())),)
    place = placed(shape, path)
    assert place is not None, "one view of an array in C order holds no copy"
    return place


@rule("as_strided")
@rule("diagonal")
@rule("unfold")
def _view(w: Writer, node: Node, x: list[str]) -> str:
    offset, _, strides = _of_view(node.name, node.attrs, node.operands[0].shape)
    made: str = w.add("Gather", [_flat(w, x[0]), _numbers(w, (offset, node.outputs[0].shape, strides))], axis=0)
    return made


@rule("undiagonal")
def _undiagonal(w: Writer, node: Node, x: list[str]) -> str:
    out = node.outputs[0]
    attrs = {name: node.attrs[name] for name in ("offset", "dim1", "dim2")}
    offset, _, strides = _of_view("diagonal", attrs, out.shape)
    return _into(w, node, zeros(w, out.dtype, out.shape), x[0], (offset, node.operands[0].shape, strides))


@rule("view_set")
def _view_set(w: Writer, node: Node, x: list[str]) -> str:
    place = placed(node.operands[0].shape, node.attrs["path"])
    if place is None:
        file, line, _ = node.source
        raise ArgumentError(f"export_onnx(): the write to a view ({file}:{line}) goes to a copy")
    return _into(w, node, x[0], x[1], place)
