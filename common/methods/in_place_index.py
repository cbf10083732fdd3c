"""In-place forms of the functions that write at indices and masks straight to a tensor's memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from common.autograd.view_histories import repeats
from common.core.dtypes import bool_
from common.core.errors import ShapeError
from common.core.sizes import same
from common.methods.assign import assign
from common.methods.in_place import apply_in_place
from common.methods.setitem import falses, fill_masked, setitem
from common.ops.index import put
from common.ops.index.put import Put
from common.ops.index.scatter_reduce import scatter
from common.ops.index.written_values import as_value
from common.ops.shape.view import expand, reshape
from common.tensor.base import TensorBase
from common.tensor.create import operand


def _given(x: Any) -> Any:
    """An array or list as a tensor; a number stays one."""
    return operand(x, None)


def _apply(x: TensorBase, write: Put, name: str) -> TensorBase:
    return apply_in_place(write.op, x, write.operands, write.attrs, name)


def _places(x: TensorBase, write: Put) -> Any:
    """Where a write of one value goes, as a mask: for memory that several elements show."""
    value, *indices = write.operands
    true = expand(as_value(True, bool_), value.shape)
    return write._replace(operands=(true, *indices)).on(falses(x.shape))


def index_add_(self: TensorBase, dim: int, index: Any, source: Any, *, alpha: float = 1) -> TensorBase:
    """In place: see `index_add`."""
    if self.ndim == 0:
        return assign(self, put.index_add(self, dim, _given(index), _given(source), alpha=alpha), "index_add")
    return _apply(self, put.put_add(self, dim, _given(index), _given(source), alpha), "index_add")


def index_copy_(self: TensorBase, dim: int, index: Any, source: Any) -> TensorBase:
    """In place: see `index_copy`."""
    if self.ndim == 0:
        return assign(self, put.index_copy(self, dim, _given(index), _given(source)), "index_copy")
    return _apply(self, put.put_copy(self, dim, _given(index), _given(source)), "index_copy")


def index_fill_(self: TensorBase, dim: int, index: Any, value: Any) -> TensorBase:
    """In place: see `index_fill`."""
    if self.ndim == 0:
        return assign(self, put.index_fill(self, dim, _given(index), value), "index_fill")
    write = put.put_fill(self, dim, _given(index), value)
    if repeats(self):
        return fill_masked(self, _places(self, write), value, "index_fill")
    return _apply(self, write, "index_fill")


def index_put_(self: TensorBase, indices: Sequence[Any], values: Any, accumulate: bool = False) -> TensorBase:
    """In place: see `index_put`."""
    values = _given(values)
    write = put.put_at(self, indices, values, accumulate)
    if not accumulate and all(isinstance(n, int) and n == 1 for n in values.shape) and repeats(self):
        return fill_masked(self, _places(self, write), reshape(values, ()), "index_put")
    return _apply(self, write, "index_put")


def fill_diagonal_(self: TensorBase, fill_value: float, wrap: bool = False) -> TensorBase:
    """Write a number to the elements whose indices are all equal.

    Parameters
    ----------
    wrap : of a matrix with more rows than columns, begin again a row below the end of each diagonal.

    Raises
    ------
    ShapeError : less than two dimensions, or more than two of different sizes.
    """
    sizes = self.shape
    if self.ndim < 2:
        raise ShapeError(f"fill_diagonal_(): dimensions must be larger than 1, got shape {tuple(sizes)}")
    if self.ndim > 2 and any(not same(n, sizes[0]) and n != sizes[0] for n in sizes):
        raise ShapeError(f"fill_diagonal_(): all dimensions of input must be of equal length, got {tuple(sizes)}")
    for start in range(0, sizes[0], sizes[1] + 1) if wrap and self.ndim == 2 else (0,):
        part = self[start:] if start else self
        while part.ndim > 1:
            part = part.diagonal()
        part.fill_(fill_value)
    return self


def scatter_(
    self: TensorBase, dim: int, index: Any, src: Any = None, *, value: Any = None, reduce: Any = None
) -> TensorBase:
    """In place: see `scatter`."""
    if self.ndim == 0 or reduce is not None:
        return assign(self, scatter(self, dim, _given(index), _given(src), value=value, reduce=reduce), "scatter")
    return _apply(self, put.put_scattered(self, dim, _given(index), _given(src), value), "scatter")


def masked_fill_(self: TensorBase, mask: Any, value: Any) -> TensorBase:
    """In place: see `masked_fill`."""
    return fill_masked(self, _given(mask), value)


METHODS = {
    "__setitem__": setitem, "fill_diagonal_": fill_diagonal_, "index_add_": index_add_, "index_copy_": index_copy_,
    "index_fill_": index_fill_, "index_put_": index_put_, "masked_fill_": masked_fill_, "scatter_": scatter_,
}  # fmt: skip
