"""interpolate: images of other sizes."""

from __future__ import annotations

import math
from typing import Any

from common.core.dispatch import called
from common.core.dtypes import default_float, int64, refuse, uint8
from common.core.errors import ArgumentError, ShapeError
from common.core.int_arguments import integers
from common.core.operators import as_operand
from common.ops.image.adaptive import adaptive_avg_pool
from common.ops.index.advanced_keys import along
from common.ops.index.gather import take_
from common.ops.linalg.matmul import matmul
from common.ops.math.arithmetic import abs
from common.ops.math.cast import clone, to
from common.ops.math.compare import clamp_max, clamp_min, where
from common.ops.math.rounding import floor
from common.ops.reduce.reductions import sum as total
from common.ops.shape.view import reshape, transpose

_SMOOTH = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2}
_MODES = ("nearest", "nearest-exact", "area", *_SMOOTH)


def number(n: Any, dtype: Any) -> Any:
    """A size as a tensor (1,)."""
    return to(along(1, 0) + n, dtype=dtype, x_dtype=int64)


def whole(x: Any) -> Any:
    """Floats without fraction as int64."""
    return to(x, dtype=int64, x_dtype=x.dtype)


def within(index: Any, extent: Any) -> Any:
    """Indices at the nearest place of a dimension."""
    return clamp_max(clamp_min(index, 0), as_operand(extent - 1))


def _near(x: Any, a: float) -> Any:
    """Keys' kernel at distances up to 1."""
    return ((a + 2) * x - (a + 3)) * x * x + 1


def _far(x: Any, a: float) -> Any:
    """Keys' kernel at distances from 1 to 2."""
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a


def cubic_weights(t: Any) -> list[Any]:
    """Weights of four neighbours of a place, `t` behind the second: Keys' kernel with a = -0.75."""
    a = -0.75
    return [_far(t + 1, a), _near(t, a), _near(1 - t, a), _far(2 - t, a)]


def _step(extent: Any, out: Any, scale: float | None, align: bool, dtype: Any) -> Any:
    """How many elements of an image lie between two of the result."""
    if align:
        return number(extent - 1, dtype) / number(out - 1, dtype) if out > 1 else 0.0
    return number(extent, dtype) / number(out, dtype) if scale is None else 1.0 / scale


def _smoothed(mode: str, y: Any, dim: int, out: Any, scale: float | None, align: bool) -> Any:
    """The image with one dimension of another size, each element a mean over all places nearer than the filter is wide.

    A smaller image has a wider filter, a triangle or Keys' kernel with a = -0.5: no place goes unseen.
    """
    extent, dtype = y.shape[dim], y.dtype
    step = _step(extent, out, scale, align, dtype)
    wide = max(step, 1.0) if isinstance(step, float) else clamp_min(step, 1)
    at, place = (to(along(n, 0), dtype=dtype, x_dtype=int64) for n in (out, extent))
    centre = reshape((at + 0.5) * step, (out, 1))
    far = abs((reshape(place + 0.5, (1, extent)) - centre) / wide)
    if mode == "bicubic":
        weights = where(far < 1, _near(far, -0.5), where(far < 2, _far(far, -0.5), 0))
    else:
        weights = clamp_min(1 - far, 0)
    weights = weights / total(weights, 1, keepdim=True)
    if dim == y.ndim - 1:
        return matmul(y, transpose(weights, 0, 1))
    return matmul(weights, y)


def _taps(mode: str, extent: Any, out: Any, scale: float | None, align: bool, dtype: Any) -> list[tuple[Any, Any]]:
    """Indices along a dimension and their weights, None for 1."""
    at = to(along(out, 0), dtype=dtype, x_dtype=int64)
    step = _step(extent, out, scale, align, dtype)
    source = at * step if align or mode == "nearest" else (at + 0.5) * step
    if mode.startswith("nearest"):
        return [(within(whole(floor(source)), extent), None)]
    if not align:
        source = source - 0.5
    if mode != "bicubic":
        source = clamp_min(source, 0)
        first = within(whole(floor(source)), extent)
        t = source - to(first, dtype=dtype, x_dtype=int64)
        return [(first, 1 - t), (within(first + 1, extent), t)]
    below = floor(source)
    first = whole(below)
    return [(within(first + (k - 1), extent), w) for k, w in enumerate(cubic_weights(source - below))]


def _given(mode: str, n: int, extent: Any, out: Any, scale: float | None, antialias: bool) -> float | None:
    """The scale of a dimension, None where its sizes decide although one is given.

    As in PyTorch, a dimension that keeps its size stays as it is, and nearest places of two dimensions that become
    twice as many are taken twice each.
    """
    if scale is None or scale == int(scale):
        return scale
    places = mode == "nearest" and n == 2
    kept = (antialias or places or mode in ("linear", "bilinear", "trilinear")) and extent == out
    return None if kept or (places and out == 2 * extent) else scale


def _sizes(x: Any, n: int, size: Any, scale_factor: Any) -> tuple[tuple[Any, ...], list[float] | None]:
    """The sizes of the result, and scales where they are given."""
    if (size is None) == (scale_factor is None):
        raise ArgumentError(
            "interpolate(): either size or scale_factor should be defined" if size is None else
            "interpolate(): only one of size or scale_factor should be defined"
        )  # fmt: skip
    if size is not None:
        sizes = integers(size, "interpolate", "size")
        sizes = sizes * n if len(sizes) == 1 and not isinstance(size, (tuple, list)) else sizes
        if len(sizes) != n:
            raise ArgumentError(
                f"Input and output must have the same number of spatial dimensions, but got input with spatial "
                f"dimensions of {list(x.shape[2:])} and output size of {size}"
            )
        return sizes, None
    given = list(scale_factor) if isinstance(scale_factor, (tuple, list)) else [scale_factor] * n
    if len(given) != n:
        raise ArgumentError(f"interpolate(): scale_factor must have {n} elements, got {given}")
    try:
        scales = [float(s) for s in given]
    except (TypeError, ValueError):
        raise ArgumentError(f"interpolate(): scale_factor must be numbers, got {scale_factor!r}") from None
    if not all(0 < s < math.inf for s in scales):
        raise ArgumentError(f"interpolate(): scale_factor must be positive, got {scales}")
    sizes = tuple(
        m * int(s) if s == int(s) else math.floor(int(m) * s) for m, s in zip(x.shape[2:], scales, strict=True)
    )
    return sizes, scales


def interpolate(
    x: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: Any = None,
    recompute_scale_factor: Any = None, antialias: bool = False,
) -> Any:  # fmt: skip
    """Images of other sizes.

    Parameters
    ----------
    x : (batch, channels, ...) with one to three dimensions. Of uint8, "bilinear" and "bicubic" round to uint8.
    size : of the result; an int, or one per dimension.
    scale_factor : or how many times as large it is.
    mode : "nearest", "nearest-exact", "area" (means); or "linear", "bilinear", "trilinear" and "bicubic" for one, two,
        three and two dimensions.
    align_corners : whether the centres of the corners stay where they are, instead of their outer edges.
    recompute_scale_factor : whether the scale follows from the sizes, not from `scale_factor`.
    antialias : whether a smaller image is smoothed, so that each element of `x` counts; "bilinear" and "bicubic" only.

    Raises
    ------
    ArgumentError : both or neither of `size` and `scale_factor`, another mode, or `align_corners` or `antialias` for
        one without.
    ShapeError : another number of dimensions than the mode has, or an empty result.
    DTypeError : bools, or ints where they would have to be rounded.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.nn.functional.interpolate(tw.tensor([[[1.0, 3.0]]]), scale_factor=2, mode="linear")
    tensor([[[1.0000, 1.5000, 2.5000, 3.0000]]])
    """
    n = x.ndim - 2
    if mode not in _MODES:
        raise ArgumentError(f"interpolate(): mode must be one of {', '.join(_MODES)}, got {mode!r}")
    if not 1 <= n <= 3 or _SMOOTH.get(mode, n) != n:
        raise ShapeError(f"interpolate(): got {x.ndim}D input, but {mode} mode needs {_SMOOTH.get(mode, n) + 2}D input")
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ArgumentError("Anti-alias option is only supported for bilinear and bicubic modes")
    if mode not in _SMOOTH and align_corners is not None:
        raise ArgumentError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    sizes, scales = _sizes(x, n, size, scale_factor)
    if recompute_scale_factor:
        if scales is None:
            raise ArgumentError("recompute_scale_factor is not meaningful with an explicit size.")
        scales = None
    if any(m < 1 for m in (*sizes, *x.shape[1:])):
        raise ShapeError(
            f"Input and output sizes should be greater than 0, but got input {list(x.shape[1:])} and output "
            f"{list(sizes)}"
        )
    if mode == "area":
        return adaptive_avg_pool(n, x, sizes)
    dtype = x.dtype if x.dtype.kind == "f" else default_float()
    picture = x.dtype == uint8 and mode in ("bilinear", "bicubic")
    if not picture:
        refuse("interpolate", x, "b" if mode.startswith("nearest") else "biu")
    y = to(x, dtype=dtype, x_dtype=uint8) if picture else x
    for d in reversed(range(n)):
        scale = None if scales is None else _given(mode, n, x.shape[2 + d], sizes[d], scales[d], antialias)
        if antialias:
            y = _smoothed(mode, y, 2 + d, sizes[d], scale, bool(align_corners))
            continue
        result = None
        for index, weight in _taps(mode, x.shape[2 + d], sizes[d], scale, bool(align_corners), dtype):
            part = take_(y, index, dim=2 + d)
            if weight is not None:
                part = part * reshape(weight, (sizes[d], *(1,) * (n - 1 - d)))
            result = part if result is None else result + part
        y = result
    if picture:
        y = to(clamp_max(clamp_min(floor(y + 0.5), 0), 255), dtype=uint8, x_dtype=dtype)
    name = {"nearest-exact": f"UpsampleNearestExact{n}D", "nearest": f"UpsampleNearest{n}D"}.get(mode)
    return called(clone(y) if y is x else y, f"{name or 'Upsample' + mode.capitalize() + f'{n}D'}Backward0")


def upsample(
    x: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: Any = None
) -> Any:
    """Another name of `interpolate`.

    Parameters
    ----------
    x, size, scale_factor, mode, align_corners : see `interpolate`.
    """
    return interpolate(x, size, scale_factor, mode, align_corners)


def upsample_nearest(x: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """Images of other sizes, each element that of the nearest place.

    Parameters
    ----------
    x, size, scale_factor : see `interpolate`.
    """
    return interpolate(x, size, scale_factor, "nearest")


def upsample_bilinear(x: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """Images of other sizes, each element between its four neighbours; corners stay corners.

    Parameters
    ----------
    x, size, scale_factor : see `interpolate`.
    """
    return interpolate(x, size, scale_factor, "bilinear", True)


__all__ = ["interpolate", "upsample", "upsample_bilinear", "upsample_nearest"]
