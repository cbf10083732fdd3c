"""Parts of a tensor as views: slices, with dimensions left out or put in; and their transpose, a part among zeros."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from common.core.errors import ArgumentError, IndexRangeError, ShapeError
from common.core.int_arguments import integer
from common.core.op import NativeCall, Op
from common.core.shapes import contiguous_strides
from common.core.sizes import same_shape
from common.core.spec import Spec, numel
from common.ops._define import kernel
from common.ops._define import view as define_view
from common.ops._samples import join, one
from common.ops.shape.view import Placed, reshape_


def _slice(offset: Any, shape: Any, strides: Any, starts: Any, sizes: Any, steps: Any) -> Placed:
    for start, stride in zip(starts, strides, strict=True):
        offset = offset + start * stride
    return offset, tuple(sizes), tuple(stride * step for stride, step in zip(strides, steps, strict=True))


@lru_cache(maxsize=4096)
def _index(starts: tuple[int, ...], sizes: tuple[int, ...], steps: tuple[int, ...]) -> tuple[Any, ...]:
    """The index of a slice; its ellipsis keeps a 0-d array an array."""
    return (*(slice(a, a + n * s if n else a, s) for a, n, s in zip(starts, sizes, steps, strict=True)), ...)


slice_ = define_view(
    "slice", _slice, lambda x, starts, sizes, steps: x[_index(starts, sizes, steps)],
    (lambda g, x_shape, starts, sizes, steps: unslice(g, shape=x_shape, starts=starts, sizes=sizes, steps=steps),),
    samples=join(one(5, 7, starts=(1, 0), sizes=(3, 4), steps=(1, 2)), one(5, starts=(4,), sizes=(0,), steps=(1,))),
    doc="start, start + step, ... along each dimension; positive steps.", parts="part",
)  # fmt: skip


def picked(sizes: Any, dims: Any) -> tuple[Any, ...]:
    """The sizes of `dims`, and 1 where there is None."""
    return tuple([1 if d is None else sizes[d] for d in dims])


def _select(offset: Any, shape: Any, strides: Any, starts: Any, sizes: Any, steps: Any, dims: Any) -> Placed:
    offset, sizes, strides = _slice(offset, shape, strides, starts, sizes, steps)
    return offset, picked(sizes, dims), tuple([0 if d is None else strides[d] for d in dims])


select_ = define_view(
    "select", _select,
    lambda x, starts, sizes, steps, dims: x[_index(starts, sizes, steps)].reshape(picked(sizes, dims)),
    (lambda g, x_shape, starts, sizes, steps: unslice(g, shape=x_shape, starts=starts, sizes=sizes, steps=steps),),
    samples=join(
        one(5, 7, starts=(3, 1), sizes=(1, 3), steps=(1, 2), dims=(1,)),
        one(5, starts=(4,), sizes=(1,), steps=(1,), dims=()),
        one(2, starts=(0,), sizes=(2,), steps=(1,), dims=(None, 0)),
    ),
    doc="A slice without some of its dimensions of size 1, and with new ones.", parts="part",
)  # fmt: skip


def sum_products(a: Sequence[Any], b: Sequence[Any]) -> Any:
    """The inner product of two tuples of sizes."""
    total: Any = 0
    for m, n in zip(a, b, strict=True):
        total = total + m * n
    return total


def _unslice_native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
    from common.kernels.arrays import copying

    (out,) = outs
    strides = contiguous_strides(out.shape)
    offset = sum_products(attrs["starts"], strides)
    steps = tuple(a * b for a, b in zip(attrs["steps"], strides, strict=True))
    return [
        copying.fill_zero(out.dtype, numel(out.shape), (1,)),
        copying.scatter(out.dtype, attrs["sizes"], offset, steps, (0, 1)),
    ]


def _unslice_oracle(g: np.ndarray, shape: Any, starts: Any, sizes: Any, steps: Any) -> np.ndarray:
    out = np.zeros(shape, g.dtype)
    place = tuple(slice(a, a + n * s, s) for a, n, s in zip(starts, sizes, steps, strict=True))
    out[place] = g.reshape(sizes)
    return out


def _unslice_rule(g: Any, x_shape: Any, starts: Any, sizes: Any, steps: Any) -> Any:
    part = slice_(g, starts=starts, sizes=sizes, steps=steps)
    return part if same_shape(sizes, x_shape) else reshape_(part, new_shape=x_shape)


unslice: Op = kernel(
    "unslice", ("x",), lambda x, *, shape, starts, sizes, steps: Spec(tuple(shape), x.dtype), _unslice_native,
    _unslice_oracle,
    (lambda g, x_shape, starts, sizes, steps: _unslice_rule(g, x_shape, starts, sizes, steps),),
    samples=join(
        one(3, 4, shape=(5, 8), starts=(1, 0), sizes=(3, 4), steps=(1, 2)),
        one(2, shape=(2,), starts=(0,), sizes=(2,), steps=(1,)),
        one(4, shape=(3, 4), starts=(2, 0), sizes=(1, 4), steps=(1, 1)),
    ),
    doc="x, under the given sizes, placed at start, start + step, ... of zeros of a shape; the transpose of slice.",
    attrs=("shape", "starts", "sizes", "steps"), node_name="SliceScatter", parts="pad",
)  # fmt: skip


def narrow(x: Any, dim: int, start: int, length: int) -> Any:
    """`length` elements along `dim` from `start` on.

    Parameters
    ----------
    x : (...)
    dim : the dimension.
    start, length : ints; a negative `start` counts from the end.

    Raises
    ------
    IndexRangeError : `start` is outside the dimension.
    ShapeError : the range leaves it.
    ArgumentError : something that is no int.
    """
    from common.core.int_arguments import normalize_dim

    axis = normalize_dim(dim, x.ndim, "narrow")
    if x.ndim == 0:
        raise ShapeError("narrow() cannot be applied to a 0-dim tensor.")
    given: Any = start
    if hasattr(given, "dtype") and (given.dtype.kind not in "iu" or given.ndim):
        raise ArgumentError("narrow(): start must be an int or a 0-dim integral Tensor.")
    start, length = integer(start, "narrow", "start"), integer(length, "narrow", "length")
    extent = x.shape[axis]
    if start < -extent or start > extent:
        raise IndexRangeError(
            f"narrow(): start out of range (expected to be in range of [{-extent}, {extent}], but got {start})"
        )
    if start < 0:
        start = start + extent
    if length < 0:
        raise ShapeError(f"narrow(): length must be non-negative, got {length}")
    if start + length > extent:
        raise ShapeError(f"narrow(): start ({start}) + length ({length}) exceeds dimension size ({extent}).")
    starts = tuple(start if i == axis else 0 for i in range(x.ndim))
    sizes = tuple(length if i == axis else n for i, n in enumerate(x.shape))
    return slice_(x, starts=starts, sizes=sizes, steps=(1,) * x.ndim)


def select(x: Any, dim: int, position: int) -> Any:
    """The slice at `index` of `dim`, without that dimension.

    Parameters
    ----------
    x : (...)
    dim : the dimension.
    position : int; a negative one counts from the end.

    Raises
    ------
    IndexRangeError : the index is outside the dimension.
    """
    from common.core.int_arguments import normalize_dim

    axis, index = normalize_dim(dim, x.ndim, "select"), integer(position, "select", "index")
    if x.ndim == 0:
        raise IndexRangeError("select() cannot be applied to a 0-dim tensor.")
    extent = x.shape[axis]
    if index < -extent or index >= extent:
        raise IndexRangeError(
            f"select(): index {index} out of range for tensor of size {list(x.shape)} at dimension {axis}"
        )
    rest = tuple(i for i in range(x.ndim) if i != axis)
    starts = tuple((index + extent if index < 0 else index) if i == axis else 0 for i in range(x.ndim))
    sizes = tuple(1 if i == axis else n for i, n in enumerate(x.shape))
    return select_(x, starts=starts, sizes=sizes, steps=(1,) * x.ndim, dims=rest)


__all__ = ["narrow", "select"]
