"""conv1d, conv2d, conv3d and conv_transpose1d, conv_transpose2d, conv_transpose3d."""

from __future__ import annotations

from typing import Any

from common.core.dtypes import refuse
from common.core.errors import ArgumentError, DTypeError, ShapeError
from common.core.int_arguments import integer
from common.core.sizes import same
from common.ops.image.convolution import conv_, conv_bias_, conv_input_
from common.ops.image.geometry import batched, documented, per_dimension, window_count
from common.ops.shape.padding import pad
from common.ops.shape.view import reshape


def _differ(a: Any, b: Any) -> bool:
    return not same(a, b) and bool(a != b)


def _check(op: str, x: Any, weight: Any, bias: Any, groups: Any, channels: Any, out: Any, n: int) -> None:
    """Refuse operands that do not fit; `channels` are those that `weight` wants, `out` those of the result."""
    for name, t in (("weight", weight), ("bias", bias)):
        if t is not None and t.dtype != x.dtype:
            raise DTypeError(f"Input type ({x.dtype}) and {name} type ({t.dtype}) should be the same")
    refuse(op, x, "b")
    if _differ(x.shape[1], channels):
        raise ShapeError(
            f"Given groups={groups}, weight of size {list(weight.shape)}, expected input{list(x.shape)} to have "
            f"{channels} channels, but got {x.shape[1]} channels instead"
        )
    if bias is not None and (bias.ndim != 1 or _differ(bias.shape[0], out)):
        raise ShapeError(
            f"Given weight of size {list(weight.shape)}, expected bias to be 1-dimensional with {out} elements, but "
            f"got bias of size {list(bias.shape)} instead"
        )


def _options(
    op: str, weight: Any, n: int, stride: Any, padding: Any, dilation: Any, groups: Any
) -> tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...], Any]:
    if weight.ndim != n + 2:
        raise ShapeError(f"{op}(): expected {n + 2}-dimensional weight, but got weight of size {list(weight.shape)}")
    stride = per_dimension(stride, n, op, "stride")
    padding = per_dimension(padding, n, op, "padding")
    dilation = per_dimension(dilation, n, op, "dilation")
    groups = integer(groups, op, "groups")
    if any(s <= 0 for s in stride):
        raise ArgumentError(f"{op}(): non-positive stride is not supported, got {list(stride)}")
    if any(p < 0 for p in padding):
        raise ArgumentError(f"{op}(): negative padding is not supported, got {list(padding)}")
    if any(d <= 0 for d in dilation):
        raise ArgumentError(f"{op}(): dilation should be greater than zero, got {list(dilation)}")
    if groups <= 0:
        raise ArgumentError(f"{op}(): non-positive groups is not supported, got {groups}")
    if any(k == 0 for k in weight.shape[2:]):
        raise ShapeError(f"{op}(): non-empty windows are needed, but got weight of size {list(weight.shape)}")
    if weight.shape[0] < groups or weight.shape[0] % groups != 0:
        wanted = f"at least {groups}" if weight.shape[0] < groups else f"divisible by {groups}"
        raise ShapeError(
            f"Given groups={groups}, expected weight to be {wanted} at dimension 0, but got weight of "
            f"size {list(weight.shape)} instead"
        )
    return stride, padding, dilation, groups


def _same_padding(op: str, x: Any, size: Any, stride: Any, dilation: Any, mode: Any) -> tuple[Any, tuple[Any, ...]]:
    """`x` and the padding on both sides for a named one: what goes beyond that on the right is put there."""
    if mode == "valid":
        return x, (0,) * len(size)
    if mode != "same":
        raise ArgumentError(f"Invalid padding string {mode!r}, should be one of 'valid', 'same'")
    if any(s != 1 for s in stride):
        raise ArgumentError("padding='same' is not supported for strided convolutions")
    total = [d * (k - 1) for k, d in zip(size, dilation, strict=True)]
    more = [t % 2 for t in total]
    if any(more):
        x = pad(x, [v for m in reversed(more) for v in (0, m)])
    return x, tuple(t // 2 for t in total)


def _conv(
    n: int, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: Any
) -> Any:
    op = f"conv{n}d"
    named = isinstance(padding, str)
    stride, pads, dilation, groups = _options(op, weight, n, stride, 0 if named else padding, dilation, groups)
    x, had_batch = batched(x, n, op)
    _check(op, x, weight, bias, groups, weight.shape[1] * groups, weight.shape[0], n)
    size = weight.shape[2:]
    if named:
        x, pads = _same_padding(op, x, size, stride, dilation, padding)
    padded = [m + 2 * p for m, p in zip(x.shape[2:], pads, strict=True)]
    reach = [d * (k - 1) + 1 for k, d in zip(size, dilation, strict=True)]
    if any(m < r for m, r in zip(padded, reach, strict=True)):
        raise ShapeError(
            f"Calculated padded input size per channel: ({' x '.join(map(str, padded))}). Kernel size: "
            f"({' x '.join(map(str, reach))}). Kernel size can't be greater than actual input size"
        )
    count = tuple(window_count(*each) for each in zip(x.shape[2:], size, stride, pads, dilation, strict=True))
    attrs = {"count": count, "stride": stride, "padding": pads, "dilation": dilation, "groups": groups}
    y = conv_(x, weight, **attrs) if bias is None else conv_bias_(x, weight, bias, **attrs)
    return y if had_batch else reshape(y, y.shape[1:])


def _conv_transpose(
    n: int, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, output_padding: Any, groups: Any, dilation: Any
) -> Any:
    op = f"conv_transpose{n}d"
    stride, padding, dilation, groups = _options(op, weight, n, stride, padding, dilation, groups)
    more = per_dimension(output_padding, n, op, "output_padding")
    x, had_batch = batched(x, n, op)
    out = weight.shape[1] * groups
    _check(op, x, weight, bias, groups, weight.shape[0], out, n)
    for m, s, d in zip(more, stride, dilation, strict=True):
        if m < 0 or (m >= s and m >= d):
            raise ArgumentError(
                "output padding must be smaller than either stride or dilation, and not negative, but got "
                f"output_padding={list(more)}, stride={list(stride)}, dilation={list(dilation)}"
            )
    sizes = tuple(
        (m - 1) * s - 2 * p + d * (k - 1) + o + 1
        for m, s, p, d, k, o in zip(x.shape[2:], stride, padding, dilation, weight.shape[2:], more, strict=True)
    )
    if any(m < 1 for m in sizes):
        raise ShapeError(
            f"Given input size per channel: {list(x.shape[2:])}. Calculated output size per channel: {list(sizes)}. "
            "Output size is too small"
        )
    y = conv_input_(x, weight, sizes=sizes, stride=stride, padding=padding, dilation=dilation, groups=groups)
    y = y if bias is None else y + reshape(bias, (out, *(1,) * n))
    return y if had_batch else reshape(y, y.shape[1:])


_CONV = """Convolution of images of {n} dimension{s}: windows times `weight`, per channel of the result.

    ``y[n, o, i] = bias[o] + sum over c, k of weight[o, c, k] x[n, c, i stride + k dilation - padding]``

    Parameters
    ----------
    x : (batch, channels, {sizes}), or without batch.
    weight : (out, channels / groups, {kernel}).
    bias : (out,), or None.
    stride : from one window to the next; an int, or one per dimension.
    padding : zeros before and after; also "valid", none, or "same", so many that the result has the size of `x`.
    dilation : from one element of a window to the next.
    groups : in how many parts the channels fall that are convolved apart.

    Returns
    -------
    tensor : (batch, out, {sizes}'), with size' = (size + 2 padding - dilation (k - 1) - 1) // stride + 1.

    Raises
    ------
    ShapeError : sizes that do not fit, or a window larger than the padded image.
    ArgumentError : stride, dilation or groups below 1, negative padding, or "same" with a stride.
    DTypeError : the dtypes differ.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.nn.functional.conv{n}d(tw.ones(1, 2{fives}), tw.ones(2, 2{threes}), padding=1).shape
    torch.Size([1, 2{results}])
    """
_TRANSPOSE = """Transposed convolution of images of {n} dimension{s}: each element times `weight`, added up as windows.

    It is the gradient of `conv{n}d` with respect to its input.

    Parameters
    ----------
    x : (batch, channels, {sizes}), or without batch.
    weight : (channels, out / groups, {kernel}).
    bias : (out,), or None.
    stride : from one window of the result to the next; an int, or one per dimension.
    padding : elements that are left out at both ends.
    output_padding : elements more at the end.
    groups : in how many parts the channels fall that are convolved apart.
    dilation : from one element of a window to the next.

    Returns
    -------
    tensor : (batch, out, {sizes}'), with size' = (size - 1) stride - 2 padding + dilation (k - 1) + output_padding + 1.

    Raises
    ------
    ShapeError : sizes that do not fit, or an empty result.
    ArgumentError : stride, dilation or groups below 1, negative padding, or `output_padding` that is not smaller than
        stride or dilation.
    DTypeError : the dtypes differ.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.nn.functional.conv_transpose{n}d(tw.ones(1, 2{fives}), tw.ones(2, 2{threes}), stride=2).shape
    torch.Size([1, 2{results}])
    """


@documented(1, _CONV, 5)
def conv1d(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Any:
    """Convolve images of 1 dimension."""
    return _conv(1, x, weight, bias, stride, padding, dilation, groups)


@documented(2, _CONV, 5)
def conv2d(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Any:
    """Convolve images of 2 dimensions."""
    return _conv(2, x, weight, bias, stride, padding, dilation, groups)


@documented(3, _CONV, 5)
def conv3d(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Any:
    """Convolve images of 3 dimensions."""
    return _conv(3, x, weight, bias, stride, padding, dilation, groups)


@documented(1, _TRANSPOSE, 11)
def conv_transpose1d(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: int = 1,
    dilation: Any = 1,
) -> Any:  # fmt: skip
    """Convolve, transposed, images of 1 dimension."""
    return _conv_transpose(1, x, weight, bias, stride, padding, output_padding, groups, dilation)


@documented(2, _TRANSPOSE, 11)
def conv_transpose2d(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: int = 1,
    dilation: Any = 1,
) -> Any:  # fmt: skip
    """Convolve, transposed, images of 2 dimensions."""
    return _conv_transpose(2, x, weight, bias, stride, padding, output_padding, groups, dilation)


@documented(3, _TRANSPOSE, 11)
def conv_transpose3d(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: int = 1,
    dilation: Any = 1,
) -> Any:  # fmt: skip
    """Convolve, transposed, images of 3 dimensions."""
    return _conv_transpose(3, x, weight, bias, stride, padding, output_padding, groups, dilation)


__all__ = ["conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"]
