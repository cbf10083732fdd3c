"""Gather and scatter at an index that is expanded: read where it lies, once for all rows that share it."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from common.core.op import Op
from common.evaluate import kernels
from common.kernels.arrays import shared_indices

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

    def run(x: Any, index: Any) -> Any:
        if 0 in index.strides and (found := _once(index, dim)) is not None:
            from common.evaluate.layouts import dense

            given, groups, many = found
            extent, inner = out.shape[dim] if writes else x.shape[dim], prod(index.shape[dim + 1 :])
            y = np.empty(out.shape, out.dtype)
            kernel = kernels.compiled(source(x.dtype, index.dtype), name)
            if not kernel(dense(x), given, y, groups, many, extent, inner, index.shape[dim]):
                return y
        return otherwise(x, index)  # it says which index is wrong

    return run


def _once(index: np.ndarray, dim: int) -> tuple[np.ndarray, int, int] | None:
    """The elements of an index of which others are repetitions; how many rows of them, and how many rows share one."""
    repeated = [s == 0 or n == 1 for s, n in zip(index.strides, index.shape, strict=True)]
    if not all(repeated[dim + 1 :]):
        return None
    first = dim
    while first and repeated[first - 1]:
        first -= 1
    given = index[(slice(None),) * first + (0,) * (dim - first) + (slice(None),) + (0,) * (index.ndim - dim - 1)]
    if not given.flags.c_contiguous:
        return None
    return given, prod(index.shape[:first]), prod(index.shape[first:dim])


__all__ = ["shared"]
