"""Convolution: windows as columns, times the weights; its two gradients; and each of them in terms of the others."""

from __future__ import annotations

from typing import Any

from common.core.op import Op
from common.core.sizes import hint
from common.core.spec import numel
from common.ops._define import composite
from common.ops._samples import Rng, Samples, away_from_zero
from common.ops.image.geometry import images, three
from common.ops.image.windows import columns_, from_columns_
from common.ops.linalg.matmul import bmm_, mm_
from common.ops.math.cast import clone
from common.ops.reduce.reductions import sum_
from common.ops.shape.view import expand_, permute_, reshape


def _windows(size: Any, count: Any, stride: Any, padding: Any, dilation: Any) -> dict[str, Any]:
    return {
        "size": three(size, 1), "count": three(count, 1), "stride": three(stride, 1), "padding": three(padding, 0),
        "dilation": three(dilation, 1), "joined": True,
    }  # fmt: skip


def _product(a: Any, b: Any, groups: int, trans_a: bool, trans_b: bool) -> Any:
    """Matrices (groups, ., .), group by group."""
    if groups == 1:
        y = mm_(reshape(a, a.shape[1:]), reshape(b, b.shape[1:]), trans_a=trans_a, trans_b=trans_b)
        return reshape(y, (1, *y.shape))
    return bmm_(a, b, trans_a=trans_a, trans_b=trans_b)


def _rows(g: Any, groups: int) -> Any:
    """(n, o, ...) as (groups, o / groups, n l)."""
    n, o, l = g.shape[0], g.shape[1], numel(g.shape[2:])
    swapped = permute_(reshape(g, (n, o, l)), dims=(1, 0, 2))
    return reshape(swapped, (groups, o // groups, n * l))


def _columns(x: Any, groups: int, windows: dict[str, Any]) -> Any:
    """The windows of `x` as (groups, c k / groups, n l)."""
    columns = columns_(images(x), **windows)
    c, k, n, l = columns.shape
    return reshape(columns, (groups, c // groups * k, n * l))


def _weights(w: Any, groups: int) -> Any:
    return reshape(w, (groups, w.shape[0] // groups, numel(w.shape[1:])))


def _apart(w: Any, places: Any) -> bool:
    """Whether images are multiplied one by one: that repeats the weights, but each image's columns stay in the cache.

    An element of a product has the same bits either way.
    """
    return hint(numel(places)) >= 2 * hint(w.shape[0])


def _repeated(w: Any, groups: int, n: Any) -> Any:
    """The weights for each image: (n groups, o / groups, c k / groups)."""
    rows = _weights(w, groups)
    _, o, c = rows.shape
    return reshape(expand_(reshape(rows, (1, groups, o, c)), new_shape=(n, groups, o, c)), (n * groups, o, c))


def _conv(x: Any, w: Any, *, count: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    windows, n = _windows(w.shape[2:], count, stride, padding, dilation), x.shape[0]
    if _apart(w, count):
        lying = columns_(images(x), **{**windows, "joined": False})
        _, c, k, l = lying.shape
        lying = reshape(lying, (n * groups, c // groups * k, l))
        y = bmm_(_repeated(w, groups, n), lying, trans_a=False, trans_b=False)
        return reshape(y, (n, w.shape[0], *count))
    columns = _columns(x, groups, windows)
    y = _product(_weights(w, groups), columns, groups, False, False)
    apart = reshape(y, (w.shape[0], x.shape[0], numel(count)))
    return reshape(clone(permute_(apart, dims=(1, 0, 2))), (x.shape[0], w.shape[0], *count))


def _conv_input(v: Any, w: Any, *, sizes: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    windows = _windows(w.shape[2:], v.shape[2:], stride, padding, dilation)
    n, c, k, l = v.shape[0], w.shape[1] * groups, numel(w.shape[2:]), numel(v.shape[2:])
    if _apart(w, v.shape[2:]):
        rows = reshape(v, (n * groups, w.shape[0] // groups, l))
        columns = bmm_(_repeated(w, groups, n), rows, trans_a=True, trans_b=False)
        columns, windows["joined"] = reshape(columns, (n, c, k, l)), False
    else:
        columns = _product(_weights(w, groups), _rows(v, groups), groups, True, False)
        columns = reshape(columns, (c, k, n, l))
    x = from_columns_(columns, sizes=three(sizes, 1), **windows)
    return x if len(sizes) == 3 else reshape(x, (n, c, *sizes))


def _conv_weight(v: Any, x: Any, *, size: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    columns = _columns(x, groups, _windows(size, v.shape[2:], stride, padding, dilation))
    w = _product(_rows(v, groups), columns, groups, False, True)
    return reshape(w, (v.shape[1], x.shape[1] // groups, *size))


def _to_input(g: Any, w: Any, x_shape: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    return conv_input_(g, w, sizes=x_shape[2:], stride=stride, padding=padding, dilation=dilation, groups=groups)


def _to_weight(g: Any, x: Any, w_shape: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    return conv_weight_(g, x, size=w_shape[2:], stride=stride, padding=padding, dilation=dilation, groups=groups)


def _forward(x: Any, w: Any, count: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    return conv_(x, w, count=count, stride=stride, padding=padding, dilation=dilation, groups=groups)


_CASES: tuple[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], dict[str, Any]], ...] = (
    ((2, 3, 4, 5), (4, 3, 2, 3), (3, 2), {"stride": (1, 2), "padding": (0, 1), "dilation": (1, 1), "groups": 1}),
    ((2, 4, 6), (4, 2, 2), (5,), {"stride": (1,), "padding": (1,), "dilation": (3,), "groups": 2}),
    ((2, 2, 4, 4), (2, 1, 2, 2), (3, 3), {"stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 2}),
    ((1, 2, 3, 3, 2), (2, 2, 2, 1, 2), (2, 2, 1), {"stride": (1, 2, 1), "padding": (0, 0, 0), "dilation": (1, 1, 1),
                                                    "groups": 1}),
)  # fmt: skip


def _samples(kind: str) -> Samples:
    def samples(rng: Rng, dtype: Any) -> list[Any]:
        found = []
        for x, w, count, attrs in _CASES:
            g = (x[0], w[0], *count)
            shapes, more = {"conv": ((x, w), {"count": count}), "bias": ((x, w, w[:1]), {"count": count}),
                            "input": ((g, w), {"sizes": x[2:]}), "weight": ((g, x), {"size": w[2:]})}[kind]  # fmt: skip
            found.append((tuple(away_from_zero(rng, s, dtype) for s in shapes), {**more, **attrs}))
        return found

    return samples


conv_: Op = composite(
    "conv", _conv,
    (lambda g, w, x_shape, stride, padding, dilation, groups: _to_input(
        g, w, x_shape, stride, padding, dilation, groups),
     lambda g, x, w_shape, stride, padding, dilation, groups: _to_weight(
        g, x, w_shape, stride, padding, dilation, groups)),
    inputs=("x", "w"), samples=_samples("conv"), node_name="Convolution",
    doc="Windows of x (n, c, ...) times w (o, c / groups, ...): a product with the windows as columns, c k of them. "
        "d/dx = conv_input(g, w), d/dw = conv_weight(g, x). Source: Dumoulin, Visin, A guide to convolution "
        "arithmetic for deep learning, 2016.",
)  # fmt: skip

conv_bias_: Op = composite(
    "conv_bias",
    lambda x, w, b, *, count, stride, padding, dilation, groups:
        _conv(x, w, count=count, stride=stride, padding=padding, dilation=dilation, groups=groups)
        + reshape(b, (b.shape[0], *(1,) * len(count))),
    (*conv_.rules, lambda g: sum_(g, dim=(0, *range(2, g.ndim)), keepdim=False)),
    inputs=("x", "w", "b"), samples=_samples("bias"), node_name="Convolution",
    doc="conv(x, w) + b per channel. d/db = g summed over all but the channels.",
)  # fmt: skip

conv_input_: Op = composite(
    "conv_input", _conv_input,
    (lambda g, w, v_shape, stride, padding, dilation, groups: _forward(
        g, w, v_shape[2:], stride, padding, dilation, groups),
     lambda g, v, w_shape, stride, padding, dilation, groups: _to_weight(
        v, g, w_shape, stride, padding, dilation, groups)),
    inputs=("v", "w"), samples=_samples("input"), node_name="Convolution",
    doc="The transposed convolution: w^T times v, added up where the windows are. d/dv = conv(g, w), "
        "d/dw = conv_weight(v, g).",
)  # fmt: skip

conv_weight_: Op = composite(
    "conv_weight", _conv_weight,
    (lambda g, x, v_shape, stride, padding, dilation, groups: _forward(
        x, g, v_shape[2:], stride, padding, dilation, groups),
     lambda g, v, x_shape, stride, padding, dilation, groups: _to_input(
        v, g, x_shape, stride, padding, dilation, groups)),
    inputs=("v", "x"), samples=_samples("weight"), node_name="ConvolutionBackward",
    doc="The gradient of the weights of a convolution: v times the windows of x. d/dv = conv(x, g), "
        "d/dx = conv_input(v, g).",
)  # fmt: skip

__all__: list[str] = []
