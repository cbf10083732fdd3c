"""max_pool, avg_pool and lp_pool, of windows of one size; max_unpool."""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from common.core import mode
from common.core.dispatch import called
from common.core.dtypes import int64, refuse
from common.core.errors import ArgumentError, ShapeError
from common.core.int_arguments import integers
from common.core.op import NativeCall, Op
from common.core.operators import as_operand
from common.core.spec import Spec, numel
from common.ops._define import kernel
from common.ops._samples import Rng, away_from_zero
from common.ops.image.geometry import batched, images, per_dimension, positive, three, window_count
from common.ops.image.windows import window_amax_, window_max_, window_sum_
from common.ops.index.advanced_keys import along
from common.ops.index.gather import gather_, require_index
from common.ops.math.arithmetic import abs, pow, sign
from common.ops.math.cast import to
from common.ops.math.compare import clamp_max, clamp_min, relu
from common.ops.math.division import div
from common.ops.shape._targets import out_of_range
from common.ops.shape.view import reshape


def _windows(
    op: str, x: Any, n: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: Any
) -> dict[str, Any]:
    """The windows over (n, c, ...), refused where PyTorch refuses them."""
    size = per_dimension(kernel_size, n, op, "kernel_size")
    step = size if stride is None or stride == () or stride == [] else per_dimension(stride, n, op, "stride")
    border = per_dimension(padding, n, op, "padding")
    apart = per_dimension(dilation, n, op, "dilation")
    for name, values in (("kernel size", size), ("stride", step), ("dilation", apart)):
        positive(values, op, name)
    for k, p, d in zip(size, border, apart, strict=True):
        if p < 0:
            raise ArgumentError(f"{op}(): pad must be non-negative, but got pad: {p}")
        if p > (d * (k - 1) + 1) // 2:
            raise ArgumentError(
                f"{op}(): pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and "
                f"dilation={d}"
            )
    if any(m == 0 for m in x.shape[1:]):
        raise ShapeError(
            f"{op}(): Expected {x.ndim - 1}D or {x.ndim}D (batch mode) tensor with optional 0 dim batch size for input "
            f"and non-batch dimensions to have positive length, but got: {list(x.shape)}"
        )
    count = tuple(
        window_count(*each, bool(ceil_mode)) for each in zip(x.shape[2:], size, step, border, apart, strict=True)
    )
    if any(m < 1 for m in count):
        raise ShapeError(
            f"Given input size: {tuple(x.shape[1:])}. Calculated output size: {(x.shape[1], *count)}. Output size is "
            "too small"
        )
    return {"size": size, "count": count, "stride": step, "padding": border, "dilation": apart}


def as_images(windows: dict[str, Any]) -> dict[str, Any]:
    """Windows of one to three dimensions as those of three."""
    return {name: three(values, int(name != "padding")) for name, values in windows.items()}


def flat(x: Any) -> Any:
    """(n, c, ...) as (n, c, l)."""
    return reshape(x, (*x.shape[:2], numel(x.shape[2:])))


def at_maxima(x: Any, windows: dict[str, Any], count: Any, node_name: str, return_indices: Any, batch: bool) -> Any:
    """The maxima of windows over (n, c, ...), and where they are."""
    shape = (*x.shape[:2], *count)[not batch :]
    every, apart = as_images(windows), any(d > 1 for d in windows["dilation"])  # those may have no element
    traced = mode.current_trace() is not None and mode.is_grad_enabled() and x.requires_grad
    found = window_max_(images(x), **every) if return_indices or traced else None
    if found is None or apart:
        values = window_amax_(images(x), **every)
    else:  # the gradient of a trace needs to know where they are
        values = gather_(flat(x), flat(found), dim=2)
    values = called(reshape(values, shape), node_name)
    return (values, reshape(found, shape)) if return_indices else values


def max_pool(
    n: int, x: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: Any, return_indices: Any
) -> Any:
    """The maxima of windows; see `max_pool2d`."""
    op = f"max_pool{n}d"
    refuse(op, x, "b")
    x, batch = batched(x, n, op)
    windows = _windows(op, x, n, kernel_size, stride, padding, dilation, ceil_mode)
    node_name = f"MaxPool{n}DWithIndicesBackward0" if n > 1 else "SqueezeBackward1"
    return at_maxima(x, windows, windows["count"], node_name, return_indices, batch)


def _lengths(extent: Any, count: Any, size: Any, stride: Any, padding: Any, inside: bool, after: int) -> Any:
    """How many elements the windows along one dimension have: all of them, or those inside; not beyond the padding."""
    start = along(count, after) * stride - padding
    end = clamp_max(start + size, as_operand(extent + padding))
    return clamp_max(end, as_operand(extent)) - clamp_min(start, 0) if inside else end - start


def require_means(op: str, x: Any) -> None:
    """Refuse dtypes in which windows are not summed: all but int64 and those of floating point."""
    if x.dtype.kind != "f" and x.dtype != int64:
        refuse(op, x)


def avg_pool(
    n: int, x: Any, kernel_size: Any, stride: Any, padding: Any, ceil_mode: Any, count_include_pad: Any, divisor: Any
) -> Any:
    """The means of windows; see `avg_pool2d`."""
    op = f"avg_pool{n}d"
    require_means(op, x)
    if divisor is not None and divisor == 0:
        raise ArgumentError(f"{op}(): divisor must be not zero")
    x, batch = batched(x, n, op)
    windows = _windows(op, x, n, kernel_size, stride, padding, 1, ceil_mode)
    count = windows["count"]
    total = reshape(window_sum_(images(x), **as_images(windows)), (*x.shape[:2], *count))
    if divisor is not None:
        y = _divided(total, divisor)
    elif not ceil_mode and (count_include_pad or not any(windows["padding"])):
        y = _divided(total, prod(windows["size"]))
    else:
        sizes: Any = 1
        for d in range(n):
            each = (windows[name][d] for name in ("count", "size", "stride", "padding"))
            m, k, s, p = each
            sizes = _lengths(x.shape[2 + d], m, k, s, p, not count_include_pad, n - 1 - d) * sizes
        y = _divided(total, to(sizes, dtype=x.dtype, x_dtype=sizes.dtype))
    return called(y if batch else reshape(y, y.shape[1:]), f"AvgPool{n}DBackward0" if n > 1 else "SqueezeBackward1")


def _divided(total: Any, by: Any) -> Any:
    return div(total, by, rounding_mode="trunc") if total.dtype.kind in "iu" else total / by


def lp_pool(n: int, x: Any, norm_type: Any, kernel_size: Any, stride: Any, ceil_mode: Any) -> Any:
    """The p-norms of windows; see `lp_pool2d`."""
    size = per_dimension(kernel_size, n, f"lp_pool{n}d", "kernel_size")
    if norm_type == math.inf:
        return max_pool(n, abs(x), kernel_size, stride, 0, 1, ceil_mode, False)
    mean = avg_pool(n, pow(x, norm_type), kernel_size, stride, 0, ceil_mode, True, None)
    return pow(sign(mean) * relu(abs(mean)) * prod(size), 1.0 / norm_type)


def _unpool_native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
    from common.kernels.arrays import indexing

    x, index = specs
    ints = (numel(x.shape[:2]), attrs["extent"], 1, x.shape[2])
    source = indexing.unpool_source(x.dtype, index.dtype)
    return [NativeCall(source, "unpool", ints, errors=out_of_range(attrs["extent"], 2))]


def _unpool_oracle(x: np.ndarray, index: np.ndarray, extent: int) -> np.ndarray:
    out = np.zeros((*x.shape[:2], extent), x.dtype)
    for place in np.ndindex(*x.shape):
        out[place[0], place[1], index[place]] = x[place]
    return out


def _apart(rng: Rng, dtype: Any) -> list[Any]:
    """Elements for different places."""
    index = np.stack([rng.permutation(6)[:4] for _ in range(6)]).reshape(2, 3, 4)
    return [((away_from_zero(rng, (2, 3, 4), dtype), index), {"extent": 6})]


unpool_: Op = kernel(
    "unpool", ("x", "index"), lambda x, index, *, extent: Spec((*x.shape[:2], extent), x.dtype), _unpool_native,
    _unpool_oracle, (lambda g, index: gather_(g, index, dim=2),),
    samples=_apart, attrs=("extent",), node_name="MaxUnpool2D",
    doc="Zeros (n, c, extent) with x (n, c, l) at index, the last one of several. d/dx = gather(g, index), for each.",
)  # fmt: skip


def max_unpool(
    n: int, x: Any, index: Any, kernel_size: Any, stride: Any, padding: Any, output_size: Any
) -> Any:
    """Maxima put back where they were; see `max_unpool2d`."""
    op = f"max_unpool{n}d"
    size = per_dimension(kernel_size, n, op, "kernel_size")
    step = size if stride is None or stride == () else per_dimension(stride, n, op, "stride")
    border = per_dimension(padding, n, op, "padding")
    positive(step, op, "stride")
    require_index(op, index)
    if tuple(index.shape) != tuple(x.shape):
        raise ShapeError(
            f"Expected shape of indices to be same as that of the input tensor ({list(x.shape)}) but got indices "
            f"tensor with shape: {list(index.shape)}"
        )
    x, batch = batched(x, n, op)
    least = [(m - 1) * s + k - 2 * p for m, s, k, p in zip(x.shape[2:], step, size, border, strict=True)]
    sizes = tuple(least)
    if output_size is not None:
        sizes = given = integers(output_size, op, "output_size")
        sizes = sizes[2:] if len(sizes) == n + 2 else sizes[1:] if len(sizes) == n + 1 else sizes
        if len(sizes) != n:
            raise ArgumentError(
                f"output_size should be a sequence containing {n} or {n + 2} elements, but it has a length of "
                f"'{len(given)}'"
            )
        for got, low, s in zip(sizes, least, step, strict=True):
            if not low - s < got < low + s:
                raise ArgumentError(
                    f'invalid output_size "{list(sizes)}" (dim sizes must be between {[m - s for m in least]} and '
                    f"{[m + s for m in least]})"
                )
    if any(m <= 0 for m in sizes):
        raise ShapeError(f"{op}(): the result would have sizes {list(sizes)}")
    places = flat(index if batch else reshape(index, (1, *index.shape)))
    y = unpool_(flat(x), places, extent=numel(sizes))
    shape = (*x.shape[:2], *sizes)
    return called(reshape(y, shape if batch else shape[1:]), f"MaxUnpool{n if n > 2 else 2}DBackward0")


__all__: list[str] = []
