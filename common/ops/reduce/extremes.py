"""Positions of extremes, and `max` and `min` in PyTorch's three forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from common.core.aliases import accept_numpy_names
from common.core.dispatch import apply, called
from common.core.docstrings import sections_of
from common.core.dtypes import int16, int64, refuse, uint8
from common.core.errors import ArgumentError, EmptyError
from common.core.int_arguments import flag, integer, is_whole_number, normalize_dim
from common.core.op import NativeCall, Op
from common.core.return_types import values_and_indices
from common.core.sizes import hint
from common.core.spec import Spec, numel
from common.ops._define import kernel
from common.ops._samples import join, one
from common.ops.index.taken import taken
from common.ops.math.cast import clone, to
from common.ops.math.compare import maximum, minimum
from common.ops.reduce.reductions import amax_, amin_, reduced
from common.ops.shape.view import reshape


def _position_op(name: str) -> Op:
    def spec(x: Spec, *, dim: int) -> Spec:
        if x.shape[dim] == 0:
            raise EmptyError(f"arg{name}(): the dimension has size 0, which has no {name}imum")
        return Spec((*x.shape[:dim], *x.shape[dim + 1 :]), int64)

    def native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
        from common.kernels.arrays import arg_extremes

        (x,), dim = specs, attrs["dim"]
        batch, rows, columns = numel(x.shape[:dim]), x.shape[dim], numel(x.shape[dim + 1 :])
        if type(columns) is int and columns == 1:
            kind = f"arg{name}_rows"
            scratch = arg_extremes.short_rows(x.dtype)[1]
            source = getattr(arg_extremes, f"{kind}_source")(x.dtype, hint(rows))
            return [NativeCall(source, kind, (batch, rows), scratch=scratch)]
        kind = f"arg{name}_cols"
        source = getattr(arg_extremes, f"{kind}_source")(x.dtype)
        return [NativeCall(source, kind, (batch, rows, columns), scratch=arg_extremes.KEYS)]

    def oracle(x: np.ndarray, dim: int) -> np.ndarray:
        from common.kernels.arrays import arg_extremes

        return arg_extremes.position_oracle(np.moveaxis(x, dim, -1), name)

    return kernel(
        f"arg{name}", ("x",), spec, native, oracle,
        samples=join(one(4, 5, dim=1), one(7, dim=0), one(6, 3, dim=0), one(2, 5, 3, dim=1)), attrs=("dim",),
        doc=f"First position of the {name}imum along a dimension; the first nan where there is one.",
    )  # fmt: skip


argmax_ = _position_op("max")
argmin_ = _position_op("min")


def _positions(op: Op, x: Any, dim: int | None, keepdim: bool) -> Any:
    keepdim = flag(keepdim, op.name, "keepdim")
    if x.dtype == uint8:
        x = to(x, dtype=int16, x_dtype=uint8)
    if dim is None or x.ndim == 0:
        if dim is not None:
            normalize_dim(dim, 0, op.name)
        found = op(reshape(x, -1), dim=0)
        return reshape(found, (1,) * x.ndim) if keepdim else found
    axis = normalize_dim(dim, x.ndim, op.name)
    found = op(x, dim=axis)
    return reshape(found, tuple(1 if i == axis else n for i, n in enumerate(x.shape))) if keepdim else found


@accept_numpy_names
def argmax(x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """The first position of the maximum along `dim`, or in the flattened tensor; int64.

    Parameters
    ----------
    x : (...)
    dim : the dimension; None takes the elements in C order.
    keepdim : leave reduced dimensions with size 1.

    Raises
    ------
    ShapeError : the dimension has size 0.
    IndexRangeError : it does not exist.
    DTypeError : bools.
    """
    refuse("argmax", x, "b")
    return _positions(argmax_, x, dim, keepdim)


@sections_of(argmax)
@accept_numpy_names
def argmin(x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """The first position of the minimum along `dim`, or in the flattened tensor; int64."""
    refuse("argmin", x, "b")
    return _positions(argmin_, x, dim, keepdim)


@accept_numpy_names
def max(x: Any, dim: Any = None, keepdim: bool = False, *, b: Any = None) -> Any:
    """The largest element; over a dimension, values and indices; with a tensor for `dim`, the larger of both.

    The gradient of the values over a dimension goes to the element at the index; that of the largest element of all
    is shared evenly by ties.

    Parameters
    ----------
    x : (...)
    dim : the dimension, or a tensor to compare with; None takes all elements.
    keepdim : leave reduced dimensions with size 1.
    b : the tensor to compare with, by its name.

    Raises
    ------
    ShapeError : a dimension of size 0.
    IndexRangeError : one that does not exist.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.max(tw.tensor([[1.0, 3.0], [2.0, 0.0]]), dim=1)
    torch.return_types.max(
    values=tensor([3., 2.]),
    indices=tensor([1, 0]))
    >>> tw.max(tw.tensor([1.0, 3.0]))
    tensor(3.)
    """
    return _extremum("Max", amax_, maximum, argmax_, x, dim, keepdim, b)


@sections_of(max)
@accept_numpy_names
def min(x: Any, dim: Any = None, keepdim: bool = False, *, b: Any = None) -> Any:
    """The smallest element; over a dimension, values and indices; with a tensor for `dim`, the smaller of both.

    See `max`.
    """
    return _extremum("Min", amin_, minimum, argmin_, x, dim, keepdim, b)


def _extremum(
    name: str, reduce: Any, elementwise: Any, position: Any, x: Any, dim: Any, keepdim: bool, other: Any
) -> Any:
    keepdim = flag(keepdim, name.lower(), "keepdim")
    if other is not None:
        if dim is not None or keepdim:
            raise ArgumentError("max(), min(): a tensor to compare with leaves no dimension; give one of dim and other")
        return elementwise(x, other)
    if dim is None:
        return apply(reduce, (x,), reduced(None, False, x.ndim, "max", f"{name}Backward1"))
    if isinstance(dim, (tuple, list)) or dim is Ellipsis or isinstance(dim, str):
        raise ArgumentError(f"max(), min(): argument 'dim' must be int or a Tensor to compare with, got {dim!r}")
    if not isinstance(dim, int):
        if not is_whole_number(dim):
            return elementwise(x, dim)
        dim = integer(dim, "max", "dim")
    axis, node_name = normalize_dim(dim, x.ndim, "max"), f"{name}Backward0"
    indices = _positions(position, x, axis, False)
    if x.ndim == 0:
        return values_and_indices(name.lower(), called(clone(x), node_name), indices)
    kept = reshape(indices, (*x.shape[:axis], 1, *x.shape[axis + 1 :]))
    values = taken(x, kept, axis, keepdim, node_name)
    return values_and_indices(name.lower(), values, kept if keepdim else indices)


__all__ = ["argmax", "argmin", "max", "min"]
