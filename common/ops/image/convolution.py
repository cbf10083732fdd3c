"""Convolution: windows as columns, times the weights; its two gradients; and each of them in terms of the others."""

from __future__ import annotations

from typing import Any

import numpy as np

from common.core.op import NativeCall, Op
from common.core.sizes import hint
from common.core.spec import Spec, numel
from common.ops._define import composite, kernel
from common.ops._samples import Rng, Samples, away_from_zero
from common.ops.image.geometry import images, three
from common.ops.image.windows import ATTRS, columns_, columns_oracle, from_columns_, from_oracle
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


def _is_one_kernel(x: Any, o: Any, *sizes: Any) -> bool:
    """Whether a convolution of floats is one kernel: other products with one row or one column have another order.

    Parameters
    ----------
    o : rows of weights per group.
    sizes : rows, or columns, of the product; of weights with one row they may be 1.
    """
    return x.dtype.kind == "f" and o != 0 and not any(size in ((0,) if o == 1 else (0, 1)) for size in sizes)


def _conv(x: Any, w: Any, *, count: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    if _is_one_kernel(x, w.shape[0] // groups, x.shape[0] * numel(count)) and numel(w.shape[1:]) != 0:
        return conv_panels_(x, w, count=count, stride=stride, padding=padding, dilation=dilation, groups=groups)
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


def _conv_bias(
    x: Any, w: Any, b: Any, *, count: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    if _is_one_kernel(x, w.shape[0] // groups, x.shape[0] * numel(count)) and numel(w.shape[1:]) != 0:
        return conv_bias_panels_(
            x, w, b, count=count, stride=stride, padding=padding, dilation=dilation, groups=groups
        )
    y = _conv(x, w, count=count, stride=stride, padding=padding, dilation=dilation, groups=groups)
    return y + reshape(b, (b.shape[0], *(1,) * len(count)))


def _conv_input(v: Any, w: Any, *, sizes: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    if _is_one_kernel(v, w.shape[0] // groups, numel(w.shape[1:]), v.shape[0] * numel(v.shape[2:])):
        return conv_input_panels_(
            v, w, sizes=sizes, stride=stride, padding=padding, dilation=dilation, groups=groups
        )
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
    inner, columns = x.shape[1] // groups * numel(size), v.shape[0] * numel(v.shape[2:])
    if _is_one_kernel(v, v.shape[1] // groups, inner) and columns != 0:
        return conv_weight_panels_(
            v, x, size=size, stride=stride, padding=padding, dilation=dilation, groups=groups
        )
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
    "conv_bias", _conv_bias,
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


def _call(name: str, x: Any, dtype: Any, o: Any, size: Any, count: Any, attrs: dict[str, Any]) -> list[NativeCall]:
    """The call of a kernel for images of shape `x`, given or asked for."""
    from common.kernels.arrays import convolutions
    from common.kernels.arrays.convolution_text import conv_args

    groups = attrs["groups"]
    windows = _windows(size, count, attrs["stride"], attrs["padding"], attrs["dilation"])
    ints = conv_args(x[0], x[1] // groups, o // groups, groups, three(x[2:], 1), [windows[name] for name in ATTRS])
    return [convolutions.call(name, ints, hint(o // groups) == 1, dtype)]


def _oracle_columns(x: np.ndarray, groups: int, windows: dict[str, Any]) -> np.ndarray:
    lying = columns_oracle(x.reshape(*x.shape[:2], *three(x.shape[2:], 1)), **windows)
    return lying.reshape(groups, lying.shape[0] // groups * lying.shape[1], -1)


def _oracle(x: np.ndarray, w: np.ndarray, *b: np.ndarray, count: Any, groups: int, **attrs: Any) -> np.ndarray:
    from common.kernels.arrays import gemm

    columns = _oracle_columns(x, groups, _windows(w.shape[2:], count, **attrs))
    y = gemm.oracle(w.reshape(groups, w.shape[0] // groups, -1), columns)
    y = y.reshape(w.shape[0], x.shape[0], *count).swapaxes(0, 1)
    return np.ascontiguousarray(y + b[0].reshape(-1, *(1,) * len(count)) if b else y)


def _rows_of(v: np.ndarray, groups: int) -> np.ndarray:
    return np.ascontiguousarray(v.swapaxes(0, 1)).reshape(groups, v.shape[1] // groups, -1)


def _input_oracle(v: np.ndarray, w: np.ndarray, sizes: Any, groups: int, **attrs: Any) -> np.ndarray:
    from common.kernels.arrays import gemm

    windows = _windows(w.shape[2:], v.shape[2:], **attrs)
    columns = gemm.oracle(w.reshape(groups, w.shape[0] // groups, -1), _rows_of(v, groups), True)
    columns = columns.reshape(w.shape[1] * groups, numel(w.shape[2:]), v.shape[0], -1)
    return from_oracle(columns, sizes=three(sizes, 1), **windows).reshape(v.shape[0], -1, *sizes)


def _weight_oracle(v: np.ndarray, x: np.ndarray, size: Any, groups: int, **attrs: Any) -> np.ndarray:
    from common.kernels.arrays import gemm

    columns = _oracle_columns(x, groups, _windows(size, v.shape[2:], **attrs))
    return gemm.oracle(_rows_of(v, groups), columns, False, True).reshape(v.shape[1], -1, *size)


_FORWARD, _BACK = ("count", "stride", "padding", "dilation", "groups"), ("stride", "padding", "dilation", "groups")

conv_panels_: Op = kernel(
    "conv_panels", ("x", "w"),
    lambda x, w, *, count, stride, padding, dilation, groups: Spec((x.shape[0], w.shape[0], *count), x.dtype),
    lambda ins, outs, a: _call("conv", ins[0].shape, ins[0].dtype, ins[1].shape[0], ins[1].shape[2:], a["count"], a),
    _oracle, conv_.rules, samples=_samples("conv"), attrs=_FORWARD, product=True, node_name="Convolution",
    doc="conv of floats as one kernel, without the columns in memory.",
)  # fmt: skip

conv_bias_panels_: Op = kernel(
    "conv_bias_panels", ("x", "w", "b"),
    lambda x, w, b, *, count, stride, padding, dilation, groups: Spec((x.shape[0], w.shape[0], *count), x.dtype),
    lambda ins, outs, a: _call(
        "conv_bias", ins[0].shape, ins[0].dtype, ins[1].shape[0], ins[1].shape[2:], a["count"], a),
    _oracle, conv_bias_.rules, samples=_samples("bias"), attrs=_FORWARD, product=True, node_name="Convolution",
    doc="conv_panels(x, w) + b per channel, in the same kernel.",
)  # fmt: skip

conv_input_panels_: Op = kernel(
    "conv_input_panels", ("v", "w"),
    lambda v, w, *, sizes, stride, padding, dilation, groups: Spec(
        (v.shape[0], w.shape[1] * groups, *sizes), v.dtype),
    lambda ins, outs, a: _call(
        "conv_input", outs[0].shape, ins[0].dtype, ins[1].shape[0], ins[1].shape[2:], ins[0].shape[2:], a),
    _input_oracle, conv_input_.rules, samples=_samples("input"), attrs=("sizes", *_BACK), product=True,
    node_name="Convolution",
    doc="conv_input as one kernel; the gradient of conv_panels with respect to its images.",
)  # fmt: skip

conv_weight_panels_: Op = kernel(
    "conv_weight_panels", ("v", "x"),
    lambda v, x, *, size, stride, padding, dilation, groups: Spec(
        (v.shape[1], x.shape[1] // groups, *size), v.dtype),
    lambda ins, outs, a: _call(
        "conv_weight", ins[1].shape, ins[0].dtype, ins[0].shape[1], a["size"], ins[0].shape[2:], a),
    _weight_oracle, conv_weight_.rules, samples=_samples("weight"), attrs=("size", *_BACK), product=True,
    node_name="ConvolutionBackward",
    doc="conv_weight as one kernel; the gradient of conv_panels with respect to its weights.",
)  # fmt: skip

__all__: list[str] = []
