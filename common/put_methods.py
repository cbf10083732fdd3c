"""In-place forms of the functions that write at indices and masks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from common.autograd.views import repeats
from common.create import operand
from common.dtypes import bool_
from common.in_place import apply_in_place
from common.methods import assign
from common.ops import put
from common.ops.index import scatter_add
from common.ops.masks import masked_scatter
from common.ops.put import Put
from common.ops.scatter_reduce import scatter_reduce
from common.ops.values import as_value
from common.ops.view import expand, reshape
from common.setitem import falses, fill_masked, setitem
from common.tensor import TensorBase


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


def scatter_(self: TensorBase, dim: int, index: Any, src: Any = None, *, value: Any = None) -> TensorBase:
    """In place: see `scatter`."""
    if self.ndim == 0:
        return assign(self, put.scatter(self, dim, _given(index), _given(src), value=value), "scatter")
    return _apply(self, put.put_scattered(self, dim, _given(index), _given(src), value), "scatter")


def scatter_add_(self: TensorBase, dim: int, index: Any, src: Any) -> TensorBase:
    """In place: see `scatter_add`."""
    return assign(self, scatter_add(self, dim, _given(index), _given(src)), "scatter_add")


def scatter_reduce_(
    self: TensorBase, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True
) -> TensorBase:
    """In place: see `scatter_reduce`."""
    value = scatter_reduce(self, dim, _given(index), _given(src), reduce, include_self=include_self)
    return assign(self, value, "scatter_reduce")


def masked_fill_(self: TensorBase, mask: Any, value: Any) -> TensorBase:
    """In place: see `masked_fill`."""
    return fill_masked(self, _given(mask), value)


def masked_scatter_(self: TensorBase, mask: Any, source: Any) -> TensorBase:
    """In place: see `masked_scatter`."""
    return assign(self, masked_scatter(self, _given(mask), _given(source)), "masked_scatter")


METHODS = {
    "__setitem__": setitem, "index_add_": index_add_, "index_copy_": index_copy_, "index_fill_": index_fill_,
    "index_put_": index_put_, "masked_fill_": masked_fill_, "masked_scatter_": masked_scatter_, "scatter_": scatter_,
    "scatter_add_": scatter_add_, "scatter_reduce_": scatter_reduce_,
}  # fmt: skip
