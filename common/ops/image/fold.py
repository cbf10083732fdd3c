"""unfold and fold: the windows of images as columns, and columns added up to images."""

from __future__ import annotations

from typing import Any

from common.core.errors import ArgumentError, ShapeError
from common.core.spec import numel
from common.ops.image.geometry import batched, images, per_dimension, positive, three, window_count
from common.ops.image.windows import columns_, from_columns_
from common.ops.shape.view import reshape


def _windows(op: str, sizes: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> dict[str, Any]:
    size, apart = per_dimension(kernel_size, 2, op, "kernel_size"), per_dimension(dilation, 2, op, "dilation")
    border, step = per_dimension(padding, 2, op, "padding"), per_dimension(stride, 2, op, "stride")
    for name, values in (("kernel size", size), ("dilation", apart), ("stride", step)):
        positive(values, op, name)
    if any(p < 0 for p in border):
        raise ArgumentError(f"{op}(): padding should be non-negative, but got {list(border)}")
    count = tuple(window_count(*each) for each in zip(sizes, size, step, border, apart, strict=True))
    if any(m < 1 for m in count):
        raise ShapeError(
            f"{op}(): Given image with spatial size {list(sizes)}, kernel_size={list(size)}, dilation={list(apart)}, "
            f"padding={list(border)}, calculated shape of the array of sliding blocks as {list(count)}, but its "
            "components must be at least one."
        )
    return {"size": three(size, 1), "count": three(count, 1), "stride": three(step, 1), "padding": three(border, 0),
            "dilation": three(apart, 1), "joined": False}  # fmt: skip


def unfold(x: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    """The windows of images as columns.

    Parameters
    ----------
    x : (batch, channels, height, width), or without batch.
    kernel_size : of the windows; an int, or two.
    dilation : from one element of a window to the next.
    padding : zeros on both sides.
    stride : from one window to the next.

    Returns
    -------
    tensor : (batch, channels kernel elements, windows).

    Raises
    ------
    ShapeError : an image smaller than a window.
    ArgumentError : a size, stride or dilation below 1, or negative padding.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.nn.functional.unfold(tw.ones(2, 3, 4, 5), 2).shape
    torch.Size([2, 12, 12])
    """
    x, batch = batched(x, 2, "unfold")
    windows = _windows("unfold", x.shape[2:], kernel_size, dilation, padding, stride)
    columns = columns_(images(x), **windows)
    y = reshape(columns, (x.shape[0], columns.shape[1] * columns.shape[2], columns.shape[3]))
    return y if batch else reshape(y, y.shape[1:])


def fold(
    x: Any, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Any:
    """Columns added up where the windows of images are: the transpose of `unfold`.

    Parameters
    ----------
    x : (batch, channels kernel elements, windows), or without batch.
    output_size : height and width of the images.
    kernel_size, dilation, padding, stride : see `unfold`.

    Returns
    -------
    tensor : (batch, channels, *output_size).

    Raises
    ------
    ShapeError : other sizes than `unfold` gives.
    ArgumentError : a size, stride or dilation below 1, or negative padding.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.nn.functional.fold(tw.ones(1, 4, 4), 3, 2)
    tensor([[[[1., 2., 1.],
              [2., 4., 2.],
              [1., 2., 1.]]]])
    """
    sizes = per_dimension(output_size, 2, "fold", "output_size")
    x, batch = batched(x, 1, "fold")
    windows = _windows("fold", sizes, kernel_size, dilation, padding, stride)
    k, l = numel(windows["size"]), numel(windows["count"])
    if x.shape[1] % k != 0:
        raise ShapeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
            f"input.size(1)={x.shape[1]} and kernel_size={list(windows['size'][1:])}."
        )
    if x.shape[2] != l:
        raise ShapeError(
            f"Given output_size={list(sizes)}, kernel_size={list(windows['size'][1:])}, expected size of input's "
            f"dimension 2 to match the calculated number of sliding blocks {l}, but got input.size(2)={x.shape[2]}."
        )
    channels = x.shape[1] // k
    y = from_columns_(reshape(x, (x.shape[0], channels, k, l)), sizes=three(sizes, 1), **windows)
    shape = (x.shape[0], channels, *sizes)
    return reshape(y, shape if batch else shape[1:])


__all__ = ["fold", "unfold"]
