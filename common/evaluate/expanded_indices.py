"""Reading and adding at indices where operands lie: an index that is expanded, once for all rows that share it; one
element of each row, whose elements lie in steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from common.core.op import Op
from common.evaluate import kernels
from common.kernels.arrays import indexing, shared_indices

Run = Callable[..., Any]


def shared(op: Op, dim: int, out: Any, otherwise: Run) -> Run:
    """``run(x, index)``: what takes an expanded index, and `otherwise` any other.

    Parameters
    ----------
    op : which reads or adds at indices of which each element has its own, along `dim`.
    out : what is known of the result.
    """
    writes = op.indexed is not None and op.indexed.writes
    source = shared_indices.scatter_source if writes else shared_indices.gather_source
    name = "shared_scatter" if writes else "shared_gather"

    def way_of(operands: Sequence[Any]) -> Run:
        """How operands of these layouts are read."""
        x, index = operands
        first = _shared_from(index.shape, index.strides, dim)
        if first is None or 0 in index.shape:
            return otherwise
        found = (slice(None),) * first + (0,) * (dim - first) + (slice(None),) + (0,) * (index.ndim - dim - 1)
        if not index[found].flags.c_contiguous:
            return otherwise
        from common.evaluate.layouts import dense

        kernel = kernels.compiled(source(x.dtype, index.dtype), name)
        extent, inner = out.shape[dim] if writes else x.shape[dim], prod(index.shape[dim + 1 :])
        ints = prod(index.shape[:first]), prod(index.shape[first:dim]), extent, inner, index.shape[dim]

        def once(x: Any, index: Any) -> Any:
            y = np.empty(out.shape, out.dtype)
            if kernel(dense(x), index[found], y, *ints):
                return otherwise(x, index)  # it says which index is wrong
            return y

        return once

    return kernels.by_layout(way_of)


def one_of_rows(out: Any, otherwise: Run) -> Run:
    """``run(x, index)``: what takes one element of rows that another dimension was before it became the last one.

    Parameters
    ----------
    out : what is known of the result.
    otherwise : what takes any operands.
    """

    def way_of(operands: Sequence[Any]) -> Run:
        """How operands of these layouts are read."""
        x, index = operands
        before = [d for d in range(index.ndim) if np.moveaxis(x, -1, d).flags.c_contiguous]
        if x.flags.c_contiguous or not before or not index.flags.c_contiguous:
            return otherwise
        shape, d = x.shape, before[0]
        kernel = kernels.compiled(indexing.gather_source(x.dtype, index.dtype), "gather")
        ints = prod(shape[:d]), shape[-1], prod(shape[d:-1]), 1

        def picked(x: Any, index: Any) -> Any:
            y = np.empty(out.shape, out.dtype)
            if kernel(np.moveaxis(x, -1, d), index, y, *ints):
                return otherwise(x, index)  # it says which index is wrong
            return y

        return picked

    return kernels.by_layout(way_of)


def _shared_from(shape: tuple[int, ...], strides: tuple[int, ...], dim: int) -> int | None:
    """From which dimension on, up to `dim`, rows share an index of which each serves a whole row; None if none does."""
    repeated = [s == 0 or n == 1 for s, n in zip(strides, shape, strict=True)]
    if 0 not in strides or not all(repeated[dim + 1 :]):
        return None
    first = dim
    while first and repeated[first - 1]:
        first -= 1
    return first


__all__ = ["one_of_rows", "shared"]
