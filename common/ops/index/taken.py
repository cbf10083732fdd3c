"""Elements that a function has found along a dimension: maxima, medians, sorted ones."""

from __future__ import annotations

from typing import Any

from common.core.dispatch import apply, known_attrs
from common.ops._define import composite
from common.ops._samples import indexed, join
from common.ops.index.gather import gather_, scatter_zeros
from common.ops.shape.view import reshape


def _taken(x: Any, index: Any, *, dim: int, keepdim: bool) -> Any:
    y = gather_(x, index, dim=dim)
    return y if keepdim else reshape(y, (*y.shape[:dim], *y.shape[dim + 1 :]))


def _taken_rule(g: Any, x_shape: Any, index: Any, dim: int) -> Any:
    return scatter_zeros(reshape(g, index.shape), index, extent=x_shape[dim], dim=dim)


taken_ = composite(
    "taken", _taken, (_taken_rule,), inputs=("x", "index"), node_name="Gather",
    samples=join(*(indexed((4, 5, 2), (4, 1, 2), 5, dim=1, keepdim=kept) for kept in (False, True))),
    doc="x at index along one dimension, and without that dimension, whose size is 1 then, unless keepdim.",
)  # fmt: skip


def taken(x: Any, index: Any, dim: int, keepdim: bool, node_name: str) -> Any:
    """The elements that a function found at `index` along `dim`, as its node."""
    return apply(taken_, (x, index), known_attrs(node_name, dim=dim, keepdim=keepdim))
