"""Indices that are data: gather and scatter, rows of tables, one element per row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from common.dim import same
from common.errors import DTypeError, ShapeError
from common.op import NativeCall
from common.ops._define import kernel
from common.spec import Spec, numel


def _check_index(op: str, index: Spec) -> None:
    if index.dtype.kind not in "iu":
        raise DTypeError(f"{op}(): Expected dtype int32/int64 for index, got {index.dtype}")


def _split(shape: tuple[Any, ...], dim: int) -> tuple[Any, Any, Any]:
    """Sizes before, at and after a dimension."""
    return numel(shape[:dim]), shape[dim], numel(shape[dim + 1 :])


def _gather_spec(x: Spec, index: Spec, *, dim: int) -> Spec:
    _check_index("gather", index)
    if x.ndim != index.ndim:
        raise ShapeError("Index tensor must have the same number of dimensions as input tensor")
    for axis, (n, limit) in enumerate(zip(index.shape, x.shape, strict=True)):
        if axis != dim and not same(n, limit) and n > limit:
            raise ShapeError(f"gather(): Size does not match at dimension {axis}: index {n}, input {limit}")
    return Spec(index.shape, x.dtype)


def _gather_native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
    x, index = specs
    return [indexing.gather(x.dtype, index.dtype, x.shape, index.shape, attrs["dim"])]


gather_ = kernel(
    "gather", ("x", "index"), _gather_spec, _gather_native, lambda x, index, dim: np.take_along_axis(x, index, dim)
    if x.shape[:dim] + x.shape[dim + 1 :] == index.shape[:dim] + index.shape[dim + 1 :]
    else indexing.gather_oracle(x, index, dim),
    (lambda g, x_shape, index, dim: _scatter_zeros(g, x_shape, index, dim),),
    doc="x at index along one dimension. The gradient is scatter_add.", attrs=("dim",),
)  # fmt: skip


def _scatter_zeros(g: Any, shape: Any, index: Any, dim: int) -> Any:
    return gather_back(g, index, shape=tuple(shape), dim=dim)


def _gather_back_native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
    g, index = specs
    return indexing.scatter_add_zeros(g.dtype, index.dtype, attrs["shape"], index.shape, attrs["dim"])


gather_back = kernel(
    "gather_back", ("g", "index"), lambda g, index, *, shape, dim: Spec(tuple(shape), g.dtype), _gather_back_native,
    lambda g, index, shape, dim: indexing.scatter_add_oracle(np.zeros(shape, g.dtype), index, g, dim),
    (lambda g, index, dim: gather_(g, index, dim=dim),),
    doc="Zeros of a shape with g added at index along one dimension, in C order of index: the transpose of gather.",
    attrs=("shape", "dim"), node_name="Gather",
)  # fmt: skip
