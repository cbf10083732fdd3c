"""Positions of nonzero elements in a tensor of a given size."""

from __future__ import annotations

from typing import Any

from common.core.errors import ArgumentError
from common.core.int_arguments import integer
from common.core.spec import numel
from common.ops.create.creation import zeros
from common.ops.index.advanced_keys import along
from common.ops.index.gather import scatter_add
from common.ops.index.written_values import of_dtype
from common.ops.math.compare import logical_and, lt, ne, where
from common.ops.reduce.reductions import sum as total
from common.ops.reduce.scans import cumsum
from common.ops.shape.cat import stack
from common.ops.shape.combinations import unravel_index
from common.ops.shape.slices import narrow
from common.ops.shape.view import reshape, unsqueeze
from common.tensor.create import lift


def nonzero_static(x: Any, *, size: int, fill_value: int = -1) -> Any:
    """The positions of the first `size` nonzero elements, in order; unlike `nonzero` also in a trace.

    Parameters
    ----------
    x : (...)
    size : how many positions.
    fill_value : what stands where there are fewer.

    Returns
    -------
    tensor : (size, number of dimensions) int64

    Raises
    ------
    ArgumentError : a negative size.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.nonzero_static(tw.tensor([[0, 3], [5, 0]]), size=3)
    tensor([[ 0,  1],
            [ 1,  0],
            [-1, -1]])
    """
    count = integer(size, "nonzero_static", "size")
    if count < 0:
        raise ArgumentError(f"nonzero_static: 'size' must be an non-negative integer, got {count}")
    filled = integer(fill_value, "nonzero_static", "fill_value")
    there = ne(reshape(x, (-1,)), 0)
    if x.ndim == 0 or numel(x.shape) == 0 or count == 0:
        return lift(zeros(count, x.ndim, dtype="int64")) + filled * (numel(x.shape) == 0 or count == 0)
    order = cumsum(there, 0) - 1
    kept = logical_and(there, lt(order, count))
    n = there.shape[0]
    slots = lift(zeros(count + 1, dtype="int64"))  # the last one takes what is left out
    found = narrow(scatter_add(slots, 0, where(kept, order, count), where(kept, along(n, 0), 0)), 0, 0, count)
    known = unsqueeze(lt(along(count, 0), total(of_dtype(there, "int64"))), 1)
    return where(known, stack(list(unravel_index(found, x.shape)), 1), filled)


__all__ = ["nonzero_static"]
