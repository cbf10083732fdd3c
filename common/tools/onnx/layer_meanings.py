"""Layers of networks: convolutions, windows, normalisations, images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from common.core.errors import ArgumentError
from common.ops import functional as F
from common.tools.onnx.applied import Applied, axis_of, meaning, of_tensors
from common.tools.onnx.host_values import arange, full, known, number, ones, sizes, tensor
from common.tools.onnx.records import dtype_of


class Windows:
    """Where the windows of an operator lie.

    Attributes
    ----------
    before, after : elements around each dimension.
    """

    def __init__(self, a: Applied, x: Any, size: Sequence[Any]) -> None:
        n = x.ndim - 2
        self.size = list(size)
        self.stride = a.get("strides") or [1] * n
        self.dilation = a.get("dilations") or [1] * n
        if len(self.size) != n or len(self.stride) != n or len(self.dilation) != n:
            raise ArgumentError(f"windows of {len(self.size)} dimensions for {list(x.shape)}")
        pads = a.get("pads") or [0] * (2 * n)
        self.before, self.after = pads[:n], pads[n:]
        way = a.get("auto_pad", "NOTSET")
        if way in ("SAME_UPPER", "SAME_LOWER"):
            total = [self._same(*each) for each in zip(x.shape[2:], self.size, self.stride, self.dilation, strict=True)]
            less, more = [t // 2 for t in total], [t - t // 2 for t in total]
            self.before, self.after = (less, more) if way == "SAME_UPPER" else (more, less)
        elif way not in ("NOTSET", "VALID"):
            raise ArgumentError(f"auto_pad is {way!r}")
        if way == "VALID":
            self.before = self.after = [0] * n

    @staticmethod
    def _same(n: Any, size: int, stride: int, dilation: int) -> Any:
        reach = (size - 1) * dilation + 1
        if stride == 1:
            return reach - 1
        total = ((n + stride - 1) // stride - 1) * stride + reach - n
        return max(total, 0) if type(total) is int else total

    @property
    def even(self) -> bool:
        """Whether both ends have as many elements around them."""
        return self.before == self.after

    def padded(self, x: Any, value: float = 0.0) -> Any:
        """The operand with elements around it."""
        listed = [n for pair in zip(self.before[::-1], self.after[::-1], strict=True) for n in pair]
        return F.pad(x, listed, value=value)


def _by_rank(name: str, x: Any) -> Any:
    if x.ndim not in (3, 4, 5):
        raise ArgumentError(f"{x.ndim - 2} dimensions of space; there are operators of 1, 2 and 3")
    return getattr(F, f"{name}{x.ndim - 2}d")


@of_tensors("Conv")
def _conv(a: Applied, x: Any, weight: Any, bias: Any = None) -> Any:
    windows = Windows(a, x, weight.shape[2:])
    around: Any = tuple(windows.before)
    if not windows.even:
        x, around = windows.padded(x), 0
    options = {"stride": tuple(windows.stride), "padding": around, "dilation": tuple(windows.dilation)}
    return _by_rank("conv", x)(x, weight, bias, groups=a.get("group", 1), **options)


@of_tensors("ConvTranspose")
def _conv_transpose(a: Applied, x: Any, weight: Any, bias: Any = None) -> Any:
    n = x.ndim - 2
    stride, dilation = a.get("strides") or [1] * n, a.get("dilations") or [1] * n
    extra = a.get("output_padding") or [0] * n
    pads = a.get("pads") or [0] * (2 * n)
    before, after = pads[:n], pads[n:]
    wanted, way = a.get("output_shape"), a.get("auto_pad", "NOTSET")
    whole = [(m - 1) * s + (k - 1) * d + 1 + e
             for m, s, k, d, e in zip(x.shape[2:], stride, weight.shape[2:], dilation, extra, strict=True)]  # fmt: skip
    if wanted is None and way in ("SAME_UPPER", "SAME_LOWER"):
        wanted = [m * s for m, s in zip(x.shape[2:], stride, strict=True)]
    if wanted is not None:
        total = [w - m for w, m in zip(whole, wanted[-n:], strict=True)]
        half = [t // 2 for t in total]
        rest = [t - h for t, h in zip(total, half, strict=True)]
        before, after = (half, rest) if way == "SAME_UPPER" else (rest, half)
    options = {"stride": tuple(stride), "dilation": tuple(dilation), "groups": a.get("group", 1)}
    apply = _by_rank("conv_transpose", x)
    if before == after and all(type(p) is int and p >= 0 for p in before):
        return apply(x, weight, bias, padding=tuple(before), output_padding=tuple(extra), **options)
    y = apply(x, weight, bias, padding=0, **options)
    own = [w - e for w, e in zip(whole, extra, strict=True)]
    for d, (m, first, last, e) in enumerate(zip(own, before, after, extra, strict=True), 2):
        y = F.pad(y, [0, 0] * (y.ndim - 1 - d) + [-first, e - last]) if type(m) is int else y
    return y


@of_tensors("MaxPool")
def _max_pool(a: Applied, x: Any) -> Any:
    windows = Windows(a, x, a.need("kernel_shape", list))
    around: Any = tuple(windows.before)
    plain = windows.even and all(2 * p <= k for p, k in zip(windows.before, windows.size, strict=True))
    if not plain:
        if a.wants(1):
            raise ArgumentError("indices of windows with uneven ends have no counterpart")
        least = -np.inf if x.dtype.kind == "f" else int(np.iinfo(x.dtype).min)
        x, around = windows.padded(x, least), 0
    options = {"stride": tuple(windows.stride), "padding": around, "dilation": tuple(windows.dilation)}
    made = _by_rank("max_pool", x)(
        x, tuple(windows.size), ceil_mode=bool(a.get("ceil_mode", 0)), return_indices=a.wants(1), **options
    )
    if not a.wants(1):
        return made
    values, places = made
    plane: Any = 1
    for n in x.shape[2:]:
        plane = plane * n
    if a.get("storage_order", 0):
        if x.ndim != 4:
            raise ArgumentError("indices in the order of columns have a counterpart for two dimensions only")
        height, width = x.shape[2:]
        places = F.remainder(places, width) * height + F.div(places, width, rounding_mode="floor")
    first = F.reshape(arange(x.shape[0] * x.shape[1]) * plane, (*x.shape[:2], *[1] * (x.ndim - 2)))
    return [values, places + first]


def _window_sums(x: Any, windows: Windows, ceil: bool) -> Any:
    """Sums of the windows of each plane."""
    planes = F.reshape(x, (x.shape[0] * x.shape[1], 1, *x.shape[2:]))
    if ceil:
        planes = windows_to_the_end(planes, windows)
    kernel = ones((1, 1, *windows.size), dtype=x.dtype)
    y = _by_rank("conv", x)(planes, kernel, stride=tuple(windows.stride), dilation=tuple(windows.dilation))
    return F.reshape(y, (*x.shape[:2], *y.shape[2:]))


def windows_to_the_end(x: Any, windows: Windows) -> Any:
    """x with zeros behind it, so that windows which begin in it end in it, too."""
    listed: list[Any] = []
    for n, k, s, d, after in zip(
        x.shape[2:], windows.size, windows.stride, windows.dilation, windows.after, strict=True
    ):
        reach = (k - 1) * d + 1
        count = -(-(n - reach) // s) + 1
        if (count - 1) * s >= n - after:
            count -= 1
        listed = [0, max((count - 1) * s + reach - n, 0), *listed]
    return F.pad(x, listed)


@of_tensors("AveragePool")
def _average_pool(a: Applied, x: Any) -> Any:
    windows, ceil = Windows(a, x, a.need("kernel_shape", list)), bool(a.get("ceil_mode", 0))
    counted = bool(a.get("count_include_pad", 0))
    plain = windows.even and set(windows.dilation) == {1}
    if plain and all(2 * p <= k for p, k in zip(windows.before, windows.size, strict=True)):
        return _by_rank("avg_pool", x)(
            x,
            tuple(windows.size),
            tuple(windows.stride),
            tuple(windows.before),
            ceil_mode=ceil,
            count_include_pad=counted,
        )
    total = _window_sums(windows.padded(x), windows, ceil)
    one = ones((1, 1, *x.shape[2:]), dtype=x.dtype)
    inside = _window_sums(windows.padded(one, float(counted)), windows, ceil)
    return total / inside


@of_tensors("LpPool")
def _lp_pool(a: Applied, x: Any) -> Any:
    windows, p = Windows(a, x, a.need("kernel_shape", list)), float(a.get("p", 2))
    total = _window_sums(F.pow(F.abs(windows.padded(x)), p), windows, bool(a.get("ceil_mode", 0)))
    return F.pow(total, 1 / p)


def _space(x: Any) -> list[int]:
    return list(range(2, x.ndim))


@of_tensors("GlobalAveragePool")
def _global_average(a: Applied, x: Any) -> Any:
    return F.mean(x, _space(x), True)


@of_tensors("GlobalMaxPool")
def _global_max(a: Applied, x: Any) -> Any:
    return F.amax(x, _space(x), True)


@of_tensors("GlobalLpPool")
def _global_lp(a: Applied, x: Any) -> Any:
    p = float(a.get("p", 2))
    return F.pow(F.sum(F.pow(F.abs(x), p), _space(x), True), 1 / p)


@meaning("MaxUnpool")
def _max_unpool(a: Applied, x: Any, places: Any, shape: Any = None) -> Any:
    n = x.ndim - 2
    size, stride = a.need("kernel_shape", list), a.get("strides") or [1] * n
    pads = a.get("pads") or [0] * (2 * n)
    wanted = [(m - 1) * s - b - e + k
              for m, s, k, b, e in zip(x.shape[2:], stride, size, pads[:n], pads[n:], strict=True)]  # fmt: skip
    x, places = tensor(x), tensor(places)
    target, total = [*x.shape[:2], *wanted], 1
    for m in target:
        total = total * m
    zeros = full((total,), 0, x.dtype)
    y = F.reshape(F.scatter(zeros, 0, F.reshape(places, (-1,)), F.reshape(x, (-1,))), tuple(target))
    if shape is None:
        return y
    more = [m - own for m, own in zip(sizes(shape, "the shape"), target, strict=True)]
    return F.pad(y, [p for m in reversed(more) for p in (0, m)])


@of_tensors("Col2Im")
def _col2im(a: Applied, x: Any, image: Any, block: Any) -> Any:
    n = a.get("pads") or [0, 0, 0, 0]
    if n[:2] != n[2:]:
        raise ArgumentError("pads that differ at the two ends")
    image, block = ([int(v) for v in known(each, "the sizes")] for each in (image, block))
    return F.fold(x, image, block, a.get("dilations") or [1, 1], n[:2], a.get("strides") or [1, 1])


# ------------------------------------------------------------------ normalisations


@of_tensors("BatchNormalization")
def _batch_norm(a: Applied, x: Any, scale: Any, bias: Any, mean: Any, var: Any) -> Any:
    eps = a.get("epsilon", 1e-5)
    if not a.get("training_mode", 0):
        return F.batch_norm(x, mean, var, scale, bias, training=False, eps=eps)
    dims = [d for d in range(x.ndim) if d != 1]
    own_mean, own_var = F.mean(x, dims), F.var(x, dims, correction=0)
    y = F.batch_norm(x, own_mean, own_var, scale, bias, training=False, eps=eps)
    keep = a.get("momentum", 0.9)
    return [y, mean * keep + own_mean * (1 - keep), var * keep + own_var * (1 - keep)][: a.nout]


@of_tensors("InstanceNormalization")
def _instance_norm(a: Applied, x: Any, scale: Any, bias: Any) -> Any:
    return F.instance_norm(x, weight=scale, bias=bias, eps=a.get("epsilon", 1e-5))


@of_tensors("GroupNormalization")
def _group_norm(a: Applied, x: Any, scale: Any, bias: Any) -> Any:
    groups, channels = a.need("num_groups", int), x.shape[1]
    if a.opset < 21:
        scale, bias = (F.reshape(F.expand(F.reshape(v, (groups, 1)), (groups, channels // groups)), (channels,))
                       for v in (scale, bias))  # fmt: skip
    return F.group_norm(x, groups, scale, bias, a.get("epsilon", 1e-5))


@of_tensors("LayerNormalization")
def _layer_norm(a: Applied, x: Any, scale: Any, bias: Any = None) -> Any:
    axis, eps = axis_of(a.get("axis", -1), x.ndim, "axis"), a.get("epsilon", 1e-5)
    if a.nout == 1 and tuple(scale.shape) == tuple(x.shape[axis:]):
        return F.layer_norm(x, tuple(x.shape[axis:]), scale, bias, eps)
    dims = list(range(axis, x.ndim))
    mean = F.mean(x, dims, True)
    inverse = F.rsqrt(F.var(x, dims, correction=0, keepdim=True) + eps)
    y = (x - mean) * inverse * scale
    return [y if bias is None else y + bias, mean, inverse][: a.nout]


@of_tensors("RMSNormalization")
def _rms_norm(a: Applied, x: Any, scale: Any) -> Any:
    dims = list(range(axis_of(a.get("axis", -1), x.ndim, "axis"), x.ndim))
    return x * F.rsqrt(F.mean(F.square(x), dims, True) + a.get("epsilon", 1e-5)) * scale


@of_tensors("LRN")
def _lrn(a: Applied, x: Any) -> Any:
    size = a.need("size", int)
    squares = F.reshape(F.square(x), (x.shape[0], 1, x.shape[1], -1))
    low = (size - 1) // 2
    around = F.pad(squares, [0, 0, low, size - 1 - low])
    total: Any = None
    for i in range(size):
        part = F.narrow(around, 2, i, x.shape[1])
        total = part if total is None else total + part
    total = F.reshape(total, tuple(x.shape))
    return x / F.pow(a.get("bias", 1.0) + total * (a.get("alpha", 1e-4) / size), a.get("beta", 0.75))


@of_tensors("LpNormalization")
def _lp_normalization(a: Applied, x: Any) -> Any:
    p, axis = a.get("p", 2), axis_of(a.get("axis", -1), x.ndim, "axis")
    norm = F.sum(F.abs(x), axis, True) if p == 1 else F.sqrt(F.sum(F.square(x), axis, True))
    return F.where(F.eq(norm, 0), F.zeros_like(x), x / norm)


@of_tensors("MeanVarianceNormalization")
def _mean_variance(a: Applied, x: Any) -> Any:
    dims = a.get("axes") or [0, 2, 3]
    away = x - F.mean(x, dims, True)
    return away / (F.sqrt(F.mean(F.square(away), dims, True)) + 1e-9)


@of_tensors("GridSample")
def _grid_sample(a: Applied, x: Any, grid: Any) -> Any:
    mode = {"linear": "bilinear", "cubic": "bicubic"}.get(a.get("mode", "bilinear"), a.get("mode", "bilinear"))
    return F.grid_sample(x, grid, mode, a.get("padding_mode", "zeros"), bool(a.get("align_corners", 0)))


@meaning("AffineGrid")
def _affine_grid(a: Applied, theta: Any, shape: Any) -> Any:
    return F.affine_grid(theta, tuple(sizes(shape, "the size")), bool(a.get("align_corners", 0)))


@meaning("HannWindow", "HammingWindow", "BlackmanWindow")
def _window(a: Applied, length: Any) -> Any:
    from common.ops.create import signal_windows

    n, periodic = int(number(length, "the length")), bool(a.get("periodic", 1))
    dtype = dtype_of(a.get("output_datatype", 1), "the window")
    if a.node.kind == "HammingWindow":
        return signal_windows.hamming_window(n, periodic, 25 / 46, 21 / 46, dtype=dtype)
    apply = signal_windows.hann_window if a.node.kind == "HannWindow" else signal_windows.blackman_window
    return apply(n, periodic, dtype=dtype)
