"""A slice of a copy replaced: the op that `x[1:3] = v` records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from common.core.errors import IndexRangeError, ShapeError
from common.core.int_arguments import integer, normalize_dim
from common.core.op import NativeCall, Op
from common.core.shapes import contiguous_strides
from common.core.spec import Spec
from common.ops._define import kernel
from common.ops._samples import away_from_zero
from common.ops.index.written_values import of_dtype
from common.ops.math.arithmetic import zeros_like
from common.ops.shape.slices import slice_, sum_products
from common.ops.shape.view import unsqueeze


def _native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
    from common.kernels.arrays import copying

    (_, v), (out,) = specs, outs
    strides = contiguous_strides(out.shape)
    steps = tuple(a * b for a, b in zip(attrs["steps"], strides, strict=True))
    place = sum_products(attrs["starts"], strides)
    return [
        copying.copy(out.dtype, copying.copy_args(out.shape), (0, 2)),
        copying.scatter(out.dtype, v.shape, place, steps, (1, 2)),
    ]


def _oracle(x: np.ndarray, v: np.ndarray, starts: Any, steps: Any) -> np.ndarray:
    out = x.copy()
    out[tuple(slice(a, a + n * s, s) for a, n, s in zip(starts, v.shape, steps, strict=True))] = v
    return out


def _without(g: Any, v_shape: Any, starts: Any, steps: Any) -> Any:
    part = slice_(g, starts=starts, sizes=v_shape, steps=steps)
    return slice_set(g, zeros_like(part), starts=starts, steps=steps)


def _samples(rng: np.random.Generator, dtype: Any) -> list[Any]:
    places = [((5, 8), (3, 4), (1, 0), (1, 2)), ((4,), (4,), (0,), (1,)), ((4,), (0,), (2,), (1,)), ((), (), (), ())]
    return [
        ((away_from_zero(rng, x, dtype), away_from_zero(rng, v, dtype)), {"starts": a, "steps": s})
        for x, v, a, s in places
    ]


slice_set: Op = kernel(
    "slice_set", ("x", "v"), lambda x, v, *, starts, steps: x, _native, _oracle,
    (lambda g, v_shape, starts, steps: _without(g, v_shape, starts, steps),
     lambda g, v_shape, starts, steps: slice_(g, starts=starts, sizes=v_shape, steps=steps)),
    samples=_samples, attrs=("starts", "steps"), node_name="CopySlices", parts="set slice",
    doc="x with v at start, start + step, ... along each dimension. The gradients are g outside and inside of it.",
)  # fmt: skip


overwrite: Op = kernel(
    "overwrite", ("x", "v"), lambda x, v: x, lambda specs, outs, attrs: _copied(outs[0]), lambda x, v: v.copy(),
    (lambda g: zeros_like(g), lambda g: g),
    samples=lambda rng, dtype: [((away_from_zero(rng, (2, 3), dtype), away_from_zero(rng, (2, 3), dtype)), {})],
    node_name="Copy",
    doc="v in the place of all of x, what `x.copy_(v)` records: x is one of its operands, but its gradient is zero.",
)  # fmt: skip


def _copied(out: Spec) -> list[NativeCall]:
    from common.kernels.arrays import copying

    return [copying.copy(out.dtype, copying.copy_args(out.shape), (1, 2))]


def slice_scatter(x: Any, src: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    """`x` with `src` in the place of ``x[start:end:step]`` along one dimension; a new tensor.

    Parameters
    ----------
    x : (...)
    src : of the shape of that slice; converted to the dtype of `x`.
    dim : the dimension.
    start, end, step : as in a Python slice.

    Raises
    ------
    ShapeError : `src` has another shape than the slice.
    ArgumentError : something that is no int, or a step that is not positive.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.slice_scatter(tw.zeros(4), tw.ones(2), start=1, end=3)
    tensor([0., 1., 1., 0.])
    """
    from common.ops.basic_keys import place

    axis = normalize_dim(dim, x.ndim, "slice_scatter")
    start = start if start is None else integer(start, "slice_scatter", "start")
    end = end if end is None else integer(end, "slice_scatter", "end")
    step = integer(step, "slice_scatter", "step")
    starts, sizes, steps, _ = place(x.shape, (slice(None),) * axis + (slice(start, end, step),))
    if len(src.shape) != x.ndim or any(m != n for m, n in zip(src.shape, sizes, strict=True)):
        raise ShapeError(
            f"slice_scatter(): expected src to have a size equal to the slice of self: src is {list(src.shape)}, the "
            f"slice {list(sizes)}"
        )
    return slice_set(x, of_dtype(src, x.dtype), starts=starts, steps=steps)


def select_scatter(x: Any, src: Any, dim: int, position: int) -> Any:
    """`x` with `src` in the place of ``x.select(dim, index)``; a new tensor.

    Parameters
    ----------
    x : (...)
    src : of the shape of `x` without `dim`; converted to the dtype of `x`.
    dim : the dimension.
    position : negativeative ones count from the end.

    Raises
    ------
    ShapeError : `src` has another shape.
    IndexRangeError : `position` is outside the dimension, or there is none.
    """
    if x.ndim == 0:
        raise IndexRangeError("select_scatter(): select() cannot be applied to a 0-dim tensor.")
    axis = normalize_dim(dim, x.ndim, "select_scatter")
    index = integer(position, "select_scatter", "index")
    n = x.shape[axis]
    if index < -n or index >= n:
        raise IndexRangeError(f"select_scatter(): index {index} is out of bounds for dimension {axis} with size {n}")
    if src.ndim != x.ndim - 1:
        raise ShapeError(
            f"select_scatter(): expected src to have a size equal to the selected part of self: src is "
            f"{list(src.shape)}, self {list(x.shape)}"
        )
    start = index + n if index < 0 else index
    return slice_scatter(x, unsqueeze(src, axis), axis, start, start + 1)


__all__ = ["select_scatter", "slice_scatter"]
