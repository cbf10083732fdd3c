"""Elements more than once: whole tensors side by side, and each element several times."""

from __future__ import annotations

from typing import Any

import numpy as np

from common.core.aliases import accept_numpy_names
from common.core.errors import DTypeError, ShapeError
from common.core.int_arguments import integer, integers, normalize_dim
from common.core.op import Op
from common.core.spec import numel
from common.ops._define import composite
from common.ops._samples import join, one
from common.ops.index.advanced_keys import along
from common.ops.index.gather import index_select
from common.ops.math.cast import clone
from common.ops.reduce.reductions import sum_
from common.ops.shape.view import expand_, reshape_
from common.ops.sort.data_dependent import elements, places_of


def _lengthened(shape: tuple[Any, ...], repeats: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*[1] * (len(repeats) - len(shape)), *shape)


def _repeat(x: Any, *, repeats: tuple[Any, ...]) -> Any:
    """Each dimension as (repeats, size), of which the first is expanded; then both as one."""
    shape = _lengthened(x.shape, repeats)
    if all(isinstance(r, int) and r == 1 for r in repeats):
        return clone(reshape_(x, new_shape=shape))
    apart = reshape_(x, new_shape=tuple(n for size in shape for n in (1, size)))
    wide = expand_(apart, new_shape=tuple(n for pair in zip(repeats, shape, strict=True) for n in pair))
    # a copy, because leading repetitions and single elements could be a view
    return reshape_(clone(wide), new_shape=tuple(r * n for r, n in zip(repeats, shape, strict=True)))


def _repeat_rule(g: Any, x_shape: Any, repeats: tuple[Any, ...]) -> Any:
    shape = _lengthened(x_shape, repeats)
    apart = reshape_(g, new_shape=tuple(n for pair in zip(repeats, shape, strict=True) for n in pair))
    # what is not repeated is not summed: a sum over one element would turn -0 into +0
    dims = tuple(2 * i for i, r in enumerate(repeats) if not (isinstance(r, int) and r == 1))
    return reshape_(sum_(apart, dim=dims, keepdim=True) if dims else apart, new_shape=x_shape)


repeat_: Op = composite(
    "repeat", _repeat, (_repeat_rule,), inputs=("x",),
    samples=join(one(2, 3, repeats=(2, 3)), one(3, repeats=(2, 1, 2)), one(2, repeats=(1,))),
    doc="x side by side, `repeats` times along each dimension. The gradient is one sum over all repetitions.",
)  # fmt: skip


def _interleave(x: Any, *, dim: int, repeats: Any) -> Any:
    before, after = x.shape[: dim + 1], x.shape[dim + 1 :]
    apart = reshape_(x, new_shape=(*before, 1, *after))
    wide = expand_(apart, new_shape=(*before, repeats, *after))
    return reshape_(clone(wide), new_shape=(*before[:-1], before[-1] * repeats, *after))


def _interleave_rule(g: Any, x_shape: Any, dim: int, repeats: Any) -> Any:
    apart = reshape_(g, new_shape=(*x_shape[: dim + 1], repeats, *x_shape[dim + 1 :]))
    return sum_(apart, dim=(dim + 1,), keepdim=False)


interleave_: Op = composite(
    "repeat_interleave", _interleave, (_interleave_rule,), inputs=("x",),
    samples=join(one(2, 3, dim=0, repeats=3), one(2, 3, dim=1, repeats=2)),
    doc="Each element `repeats` times along a dimension. The gradient is the sum over the repetitions.",
    node_name="RepeatInterleave",
)  # fmt: skip


def repeat(x: Any, repeats: Any, *more: Any) -> Any:
    """`x` side by side, so many times along each dimension; new memory.

    Parameters
    ----------
    x : (...)
    repeats, more : how often along each dimension; further ones than `x` has count as new leading dimensions.

    Raises
    ------
    ShapeError : fewer numbers than dimensions, or a negative one.
    ArgumentError : something that is no int.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.arange(2).repeat(2, 2)
    tensor([[0, 1, 0, 1],
            [0, 1, 0, 1]])
    """
    repeats = integers((repeats, *more) if more else repeats, "repeat", "repeats")
    if len(repeats) < x.ndim:
        raise ShapeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor: "
            f"{len(repeats)} for {x.ndim}"
        )
    return _repeated(x, repeats, "repeat")


def tile(x: Any, dims: Any, *more: Any) -> Any:
    """`x` side by side, as `repeat`; leading numbers that are left out are 1.

    Parameters
    ----------
    x : (...)
    dims, more : how often along each dimension.

    Raises
    ------
    ShapeError : a negative number.
    ArgumentError : something that is no int.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.tile(tw.eye(2), (2,)).shape
    torch.Size([2, 4])
    """
    repeats = integers((dims, *more) if more else dims, "tile", "dims")
    return _repeated(x, (*[1] * (x.ndim - len(repeats)), *repeats), "tile")


def _repeated(x: Any, repeats: tuple[Any, ...], op: str) -> Any:
    if any(r < 0 for r in repeats):
        raise ShapeError(f"{op}(): Trying to create tensor with negative dimension: repeated {list(repeats)} times")
    return repeat_(x, repeats=repeats)


@accept_numpy_names
def repeat_interleave(x: Any, repeats: Any = None, dim: Any = None, output_size: Any = None) -> Any:
    """Each element several times in a row; new memory.

    Parameters
    ----------
    x : (..., n, ...)
    repeats : an int; or (n) ints, outside a trace, where the size of a result may depend on data. Without it, `x` are
        the numbers, and their positions are repeated.
    dim : the dimension; the flattened `x` by default.
    output_size : the size that comes out, which is checked.

    Raises
    ------
    ShapeError : a negative number, or not one per element, or another size than `output_size`.
    DTypeError : `repeats` is no tensor of integers.
    TraceError : a tensor of `repeats` in a trace.
    IndexRangeError : a dimension that does not exist.
    ArgumentError : something that is no int.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.repeat_interleave(tw.tensor([7, 8]), 2)
    tensor([7, 7, 8, 8])
    >>> tw.repeat_interleave(tw.tensor([7, 8]), tw.tensor([1, 3]))
    tensor([7, 8, 8, 8])
    """
    if repeats is None:
        x, repeats = along(x.shape[0], 0), x
    if dim is None:
        x, dim = reshape_(x, new_shape=(numel(x.shape),)), 0
    axis = normalize_dim(dim, x.ndim, "repeat_interleave")
    if x.ndim == 0:
        x = reshape_(x, new_shape=(1,))
    if _is_array(repeats):
        y = _by_counts(x, repeats, axis)
    else:
        count = integer(repeats, "repeat_interleave", "repeats")
        if count < 0:
            raise ShapeError(f"repeat_interleave(): repeats has to be non-negative, got {count}")
        y = interleave_(x, dim=axis, repeats=count)
    if output_size is not None and y.shape[axis] != integer(output_size, "repeat_interleave", "output_size"):
        raise ShapeError(f"repeat_interleave(): the result has {y.shape[axis]} elements, not output_size={output_size}")
    return y


def _is_array(repeats: Any) -> bool:
    """Whether these are data: a list, an array or a tensor, but not a number of a traced call."""
    from common.tensor.base import TensorBase

    if isinstance(repeats, TensorBase):
        return not getattr(getattr(repeats.payload, "spec", None), "weak", False)
    return isinstance(repeats, list) or (isinstance(repeats, np.ndarray) and repeats.ndim > 0)


def _by_counts(x: Any, repeats: Any, axis: int) -> Any:
    """A gather whose index holds each position as often as it is wanted."""
    from common.tensor.create import lift

    counts = np.asarray(repeats) if isinstance(repeats, list) else elements(
        repeats, "repeat_interleave", "give an int, or call it outside and pass the result in"
    )
    if counts.dtype.kind not in "iu":
        raise DTypeError(f"repeat_interleave(): repeats has to be an int or integer tensor, got {counts.dtype}")
    n = x.shape[axis]
    if counts.ndim > 1 or (counts.ndim == 1 and counts.size not in (1, n)):
        raise ShapeError(
            f"repeat_interleave(): repeats must have the same size as input along dim, but got repeats of shape "
            f"{counts.shape} for size {n}"
        )
    index = places_of(counts if counts.shape == (n,) else np.broadcast_to(counts, (n,)), "repeat_interleave")
    if index is None:
        raise ShapeError("repeat_interleave(): repeats can not be negative")
    return index_select(x, axis, lift(index))


__all__ = ["repeat", "repeat_interleave", "tile"]
