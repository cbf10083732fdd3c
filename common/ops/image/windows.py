"""The windows of images as columns, and the sums and maxima over windows: the ops under functions of images.

All of them take (n, c, d, h, w), and the attributes `size`, `count`, `stride`, `padding` and `dilation` of windows,
three numbers each; `count`, how many windows there are, may reach beyond the image.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from common.core.dtypes import int64
from common.core.op import NativeCall, Op
from common.core.sizes import hint
from common.core.spec import Spec, numel
from common.ops._define import composite, kernel
from common.ops._samples import away_from_zero, join, one
from common.ops.index.gather import gather_, scatter_zeros
from common.ops.index.written_values import without_history
from common.ops.shape.view import reshape

ATTRS = ("size", "count", "stride", "padding", "dilation")


def _given(attrs: dict[str, Any]) -> list[Any]:
    return [attrs[name] for name in ATTRS]


def _steps(n: Any, c: Any, k: Any, l: Any, joined: bool) -> tuple[Any, ...]:
    """Elements from one n, c and k to the next among columns (n, c, k, l), or (c, k, n, l) if `joined`."""
    return (l, k * n * l, n * l) if joined else (c * k * l, k * l, l)


def _columns_spec(x: Spec, *, size: Any, count: Any, stride: Any, padding: Any, dilation: Any, joined: bool) -> Spec:
    n, c = x.shape[:2]
    k, l = numel(size), numel(count)
    return Spec((c, k, n, l) if joined else (n, c, k, l), x.dtype)


def _columns_native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
    return [_column_call("columns", specs[0].shape, specs[0].dtype, attrs)]


def _column_call(name: str, shape: Any, dtype: Any, attrs: dict[str, Any]) -> NativeCall:
    from common.kernels.arrays import windows

    n, c = shape[:2]
    steps = _steps(n, c, numel(attrs["size"]), numel(attrs["count"]), attrs["joined"])
    ints = windows.column_args(n, c, shape[2:], _given(attrs), steps)
    return NativeCall(getattr(windows, f"{name}_source")(dtype), name, ints)


def _places(sizes: Any, size: Any, count: Any, stride: Any, padding: Any, dilation: Any) -> Iterator[tuple[Any, ...]]:
    """``(window, k, place)`` for all places of windows inside an image, window by window."""
    for l, at in enumerate(product(*map(range, count))):
        if 0 in size:
            begin = [i * n // m for i, n, m in zip(at, sizes, count, strict=True)]
            end = [-(-(i + 1) * n // m) for i, n, m in zip(at, sizes, count, strict=True)]
            for k, place in enumerate(product(*map(range, begin, end))):
                yield l, k, place
            continue
        for k, inside in enumerate(product(*map(range, size))):
            five = zip(at, stride, padding, inside, dilation, strict=True)
            place = tuple(i * s - p + j * e for i, s, p, j, e in five)
            if all(0 <= i < n for i, n in zip(place, sizes, strict=True)):
                yield l, k, place


def columns_oracle(x: np.ndarray, joined: bool, **windows: Any) -> np.ndarray:
    out = np.zeros((*x.shape[:2], numel(windows["size"]), numel(windows["count"])), x.dtype)
    for l, k, place in _places(x.shape[2:], **windows):
        out[:, :, k, l] = x[(slice(None), slice(None), *place)]
    return np.ascontiguousarray(out.transpose(1, 2, 0, 3)) if joined else out


_SAMPLES = (
    {"size": (1, 2, 2), "count": (1, 3, 2), "stride": (1, 1, 2), "padding": (0, 0, 1), "dilation": (1, 1, 1)},
    {"size": (2, 1, 2), "count": (2, 2, 3), "stride": (1, 2, 1), "padding": (1, 0, 0), "dilation": (2, 1, 2)},
    {"size": (1, 1, 3), "count": (2, 4, 5), "stride": (1, 1, 1), "padding": (0, 0, 0), "dilation": (1, 1, 1)},
)


def _column_samples(**more: Any) -> Any:
    """Columns of images (2, 3, 2, 4, 5)."""
    def shape(windows: dict[str, Any], joined: bool) -> tuple[int, ...]:
        k, l = numel(windows["size"]), numel(windows["count"])
        return (3, k, 2, l) if joined else (2, 3, k, l)

    return join(*(one(*(shape(w, joined) if more else (2, 3, 2, 4, 5)), **w, joined=joined, **more)
                  for w in _SAMPLES for joined in (False, True)))  # fmt: skip


columns_: Op = kernel(
    "columns", ("x",), _columns_spec, _columns_native, columns_oracle,
    (lambda g, x_shape, size, count, stride, padding, dilation, joined: from_columns_(
        g, sizes=x_shape[2:], size=size, count=count, stride=stride, padding=padding, dilation=dilation,
        joined=joined),),
    samples=_column_samples(), attrs=(*ATTRS, "joined"), node_name="Im2Col",
    doc="The windows of images (n, c, d, h, w) as columns (n, c, k, l), or (c, k, n, l) if `joined`; 0 outside.",
)  # fmt: skip


def _from_spec(
    v: Spec, *, sizes: Any, size: Any, count: Any, stride: Any, padding: Any, dilation: Any, joined: bool
) -> Spec:
    n, c = (v.shape[2], v.shape[0]) if joined else v.shape[:2]
    return Spec((n, c, *sizes), v.dtype)


def _from_native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
    return [_column_call("from_columns", outs[0].shape, specs[0].dtype, attrs)]


def from_oracle(v: np.ndarray, sizes: Any, joined: bool, **windows: Any) -> np.ndarray:
    g = v.transpose(2, 0, 1, 3) if joined else v
    out = np.zeros((*g.shape[:2], *sizes), g.dtype)
    for l, k, place in sorted(_places(sizes, **windows), key=lambda found: found[1]):
        out[(slice(None), slice(None), *place)] += g[:, :, k, l]
    return out


from_columns_: Op = kernel(
    "from_columns", ("v",), _from_spec, _from_native, from_oracle,
    (lambda g, size, count, stride, padding, dilation, joined: columns_(
        g, size=size, count=count, stride=stride, padding=padding, dilation=dilation, joined=joined),),
    samples=_column_samples(sizes=(2, 4, 5)), attrs=("sizes", *ATTRS, "joined"), node_name="Col2Im",
    doc="Columns added to the places in images that `columns` takes them from, in the order of k.",
)  # fmt: skip


def _window_call(name: str, shape: Any, dtype: Any, attrs: dict[str, Any]) -> NativeCall:
    from common.kernels.arrays import window_rows, windows

    known = {"add": 0, "sum": 3, "max": 4, "amax": 3}[name]  # what a kernel is written for
    baked = [attrs[key] for key in ("size", "stride", "dilation", "padding")[:known]]
    if known == 3:
        baked += [tuple(map(hint, shape[2:])), tuple(map(hint, attrs["count"]))]
    source = getattr(window_rows if known == 3 else windows, f"{name}_source")(dtype, *baked)
    return NativeCall(source, f"window_{name}", windows.window_args(numel(shape[:2]), shape[2:], _given(attrs)))


def _sum_oracle(x: np.ndarray, **windows: Any) -> np.ndarray:
    out = np.zeros((*x.shape[:2], numel(windows["count"])), x.dtype)
    for l, _, place in _places(x.shape[2:], **windows):
        out[:, :, l] += x[(slice(None), slice(None), *place)]
    return out.reshape(*x.shape[:2], *windows["count"])


def _add_oracle(v: np.ndarray, sizes: Any, **windows: Any) -> np.ndarray:
    out, rows = np.zeros((*v.shape[:2], *sizes), v.dtype), v.reshape(*v.shape[:2], -1)
    for l, _, place in _places(sizes, **windows):
        out[(slice(None), slice(None), *place)] += rows[:, :, l]
    return out


def _max_oracle(x: np.ndarray, **windows: Any) -> np.ndarray:
    out = np.full((*x.shape[:2], numel(windows["count"])), -1)
    _, h, w = x.shape[2:]
    for l, _, (i, j, k) in _places(x.shape[2:], **windows):
        for n, c in np.ndindex(x.shape[:2]):
            new, old = x[n, c, i, j, k], out[n, c, l]
            if old < 0 or new > x[n, c].flat[old] or new != new:
                out[n, c, l] = (i * h + j) * w + k
    return out.reshape(*x.shape[:2], *windows["count"])


_ADAPTIVE = {"size": (0, 0, 0), "count": (1, 3, 2), "stride": (1, 1, 1), "padding": (0, 0, 0), "dilation": (1, 1, 1)}


def _window_samples(**more: Any) -> Any:
    shapes = [(2, 3, *w["count"]) if more else (2, 3, 2, 4, 5) for w in (*_SAMPLES, _ADAPTIVE)]
    return join(*(one(*s, **w, **more) for s, w in zip(shapes, (*_SAMPLES, _ADAPTIVE), strict=True)))


window_sum_: Op = kernel(
    "window_sum", ("x",),
    lambda x, *, size, count, stride, padding, dilation: Spec((*x.shape[:2], *count), x.dtype),
    lambda specs, outs, attrs: [_window_call("sum", specs[0].shape, specs[0].dtype, attrs)], _sum_oracle,
    (lambda g, x_shape, size, count, stride, padding, dilation: window_add_(
        g, sizes=x_shape[2:], size=size, count=count, stride=stride, padding=padding, dilation=dilation),),
    samples=_window_samples(), attrs=ATTRS, node_name="AvgPool2D",
    doc="The sum of the elements of each window, one after the other.",
)  # fmt: skip

window_add_: Op = kernel(
    "window_add", ("v",),
    lambda v, *, sizes, size, count, stride, padding, dilation: Spec((*v.shape[:2], *sizes), v.dtype),
    lambda specs, outs, attrs: [_window_call("add", outs[0].shape, specs[0].dtype, attrs)], _add_oracle,
    (lambda g, size, count, stride, padding, dilation: window_sum_(
        g, size=size, count=count, stride=stride, padding=padding, dilation=dilation),),
    samples=_window_samples(sizes=(2, 4, 5)), attrs=("sizes", *ATTRS), node_name="AvgPool2DBackward",
    doc="Zeros with a number per window added to all of its places, window by window.",
)  # fmt: skip

window_max_: Op = kernel(
    "window_max", ("x",),
    lambda x, *, size, count, stride, padding, dilation: Spec((*x.shape[:2], *count), int64),
    lambda specs, outs, attrs: [_window_call("max", specs[0].shape, specs[0].dtype, attrs)], _max_oracle,
    samples=_window_samples(), attrs=ATTRS,
    doc="Where in (d, h, w) the maximum of each window is: the first one, or the last nan.",
)  # fmt: skip


def _amax_oracle(x: np.ndarray, **windows: Any) -> np.ndarray:
    found = _max_oracle(x, **windows)
    rows, at = x.reshape(*x.shape[:2], -1), found.reshape(*x.shape[:2], -1)
    least = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    maxima = np.where(at < 0, x.dtype.type(least), np.take_along_axis(rows, np.maximum(at, 0), 2))
    return maxima.reshape(found.shape)


def _at_maxima(x: Any, windows: dict[str, Any]) -> Any:
    """Where the maxima of windows are, as (n, c, l)."""
    return reshape(window_max_(x, **windows), (*x.shape[:2], numel(windows["count"])))


def _to_maxima(v: Any, x: Any, *, size: Any, count: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    found = _at_maxima(x, dict(zip(ATTRS, (size, count, stride, padding, dilation), strict=True)))
    return reshape(scatter_zeros(reshape(v, found.shape), found, extent=numel(x.shape[2:]), dim=2), x.shape)


def _from_maxima(g: Any, x: Any, v_shape: Any, **windows: Any) -> Any:
    flat = reshape(g, (*x.shape[:2], numel(x.shape[2:])))
    return reshape(gather_(flat, _at_maxima(x, windows), dim=2), v_shape)


def _maxima_samples(rng: Any, dtype: Any) -> list[Any]:
    """Images, and a number for each of their windows."""
    given = [
        ((1, 2, 2), (2, 2, 3), (1, 2, 2), (0, 0, 0)), ((2, 1, 3), (1, 4, 1), (2, 1, 3), (0, 0, 0)),
        ((1, 2, 2), (2, 3, 5), (1, 1, 1), (0, 0, 1)), ((1, 2, 2), (2, 1, 2), (1, 2, 2), (0, 0, 0), (1, 3, 2)),
    ]  # fmt: skip
    return [
        ((away_from_zero(rng, (2, 3, *count), dtype), away_from_zero(rng, (2, 3, 2, 4, 5), dtype)),
         {"size": size, "count": count, "stride": stride, "padding": padding, "dilation": (*dilation, (1, 1, 1))[0]})
        for size, count, stride, padding, *dilation in given
    ]  # fmt: skip


window_put_: Op = composite(
    "window_put", _to_maxima,
    (lambda g, x, v_shape, size, count, stride, padding, dilation: _from_maxima(
        g, x, v_shape, size=size, count=count, stride=stride, padding=padding, dilation=dilation), None),
    inputs=("v", "x"), reduce="window_put", samples=_maxima_samples, node_name="MaxPool2DWithIndicesBackward",
    doc="Zeros with a number per window added where its maximum in x is. d/dv takes it from there.",
)  # fmt: skip


window_amax_: Op = kernel(
    "window_amax", ("x",),
    lambda x, *, size, count, stride, padding, dilation: Spec((*x.shape[:2], *count), x.dtype),
    lambda specs, outs, attrs: [_window_call("amax", specs[0].shape, specs[0].dtype, attrs)], _amax_oracle,
    (lambda g, x, size, count, stride, padding, dilation: window_put_(
        g, without_history(x), size=size, count=count, stride=stride, padding=padding, dilation=dilation),),
    samples=_window_samples(), attrs=ATTRS, node_name="MaxPool2DWithIndices",
    doc="The maximum of each window, from its first place or the last nan; g goes there. The least number of none.",
)  # fmt: skip

__all__: list[str] = []
