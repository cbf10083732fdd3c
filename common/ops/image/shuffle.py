"""pixel_shuffle, pixel_unshuffle and channel_shuffle: the same elements in another order."""

from __future__ import annotations

from typing import Any

from common.core.errors import ArgumentError, ShapeError
from common.core.int_arguments import integer
from common.core.op import Op
from common.ops._define import composite
from common.ops._samples import join, one
from common.ops.math.cast import clone
from common.ops.shape.view import permute_, reshape


def _factor(op: str, x: Any, factor: Any, name: str) -> Any:
    factor = integer(factor, op, name)
    if x.ndim < 3:
        raise ShapeError(f"{op} expects input to have at least 3 dimensions, but got input with {x.ndim} dimension(s)")
    if factor <= 0:
        raise ArgumentError(f"{op} expects a positive {name}, but got {factor}")
    return factor


def _shuffled(x: Any, *, r: int) -> Any:
    (*lead, c, h, w), n = x.shape, x.ndim - 3
    apart = reshape(x, (*lead, c // (r * r), r, r, h, w))
    y = permute_(apart, dims=(*range(n + 1), n + 3, n + 1, n + 4, n + 2))
    return reshape(y, (*lead, c // (r * r), h * r, w * r))


def _unshuffled(x: Any, *, r: int) -> Any:
    (*lead, c, h, w), n = x.shape, x.ndim - 3
    apart = reshape(x, (*lead, c, h // r, r, w // r, r))
    y = permute_(apart, dims=(*range(n + 1), n + 2, n + 4, n + 1, n + 3))
    return reshape(y, (*lead, c * (r * r), h // r, w // r))


shuffled_: Op = composite(
    "pixel_shuffle", _shuffled, (lambda g, r: unshuffled_(g, r=r),), inputs=("x",), reduce="shuffled",
    samples=join(one(4, 2, 3, r=2), one(2, 9, 1, 2, r=3)), node_name="PixelShuffle",
    doc="(..., c r^2, h, w) as (..., c, h r, w r).",
)  # fmt: skip

unshuffled_: Op = composite(
    "pixel_unshuffle", _unshuffled, (lambda g, r: shuffled_(g, r=r),), inputs=("x",), reduce="unshuffled",
    samples=join(one(1, 4, 6, r=2), one(2, 1, 3, 6, r=3)), node_name="PixelUnshuffle",
    doc="(..., c, h r, w r) as (..., c r^2, h, w).",
)  # fmt: skip


def pixel_shuffle(x: Any, upscale_factor: int) -> Any:
    """Channels spread over larger images: (..., c r^2, h, w) as (..., c, h r, w r).

    Parameters
    ----------
    x : (..., c r^2, h, w)
    upscale_factor : r.

    Raises
    ------
    ShapeError : fewer than three dimensions, or channels that r^2 does not divide.
    ArgumentError : a factor below 1.

    References
    ----------
    Shi and others, Real-time single image and video super-resolution, 2016.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.nn.functional.pixel_shuffle(tw.arange(4).reshape(4, 1, 1), 2)
    tensor([[[0, 1],
             [2, 3]]])
    """
    r = _factor("pixel_shuffle", x, upscale_factor, "upscale_factor")
    c = x.shape[-3]
    if c % (r * r) != 0:
        raise ShapeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
            f"but input.size(-3)={c} is not divisible by {r * r}"
        )
    return clone(x) if r == 1 else shuffled_(x, r=r)


def pixel_unshuffle(x: Any, downscale_factor: int) -> Any:
    """The inverse of `pixel_shuffle`: (..., c, h r, w r) as (..., c r^2, h, w).

    Parameters
    ----------
    x : (..., c, h r, w r)
    downscale_factor : r.

    Raises
    ------
    ShapeError : fewer than three dimensions, or sizes that r does not divide.
    ArgumentError : a factor below 1.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.nn.functional.pixel_unshuffle(tw.arange(4).reshape(1, 2, 2), 2).flatten()
    tensor([0, 1, 2, 3])
    """
    r = _factor("pixel_unshuffle", x, downscale_factor, "downscale_factor")
    for name, size in (("height", x.shape[-2]), ("width", x.shape[-1])):
        if size % r != 0:
            raise ShapeError(f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but {size} is not "
                             f"divisible by {r}")  # fmt: skip
    return clone(x) if r == 1 else unshuffled_(x, r=r)


def channel_shuffle(x: Any, groups: int) -> Any:
    """Channels of all groups in turn: the first of each group, then the second of each.

    Parameters
    ----------
    x : (batch, channels, ...)
    groups : how many, which divide the channels.

    Raises
    ------
    ShapeError : fewer than three dimensions, or channels that the groups do not divide.
    ArgumentError : a number of groups below 1.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.nn.functional.channel_shuffle(tw.arange(4).reshape(1, 4, 1), 2).flatten()
    tensor([0, 2, 1, 3])
    """
    groups = _factor("channel_shuffle", x, groups, "groups")
    n, c, *rest = x.shape
    if c % groups != 0:
        raise ShapeError(f"Number of channels must be divisible by groups. Got {c} channels and {groups} groups.")
    apart = reshape(x, (n, groups, c // groups, *rest))
    y = reshape(permute_(apart, dims=(0, 2, 1, *range(3, x.ndim + 1))), x.shape)
    return clone(y) if groups in (1, c) else y  # which would be a view


__all__ = ["channel_shuffle", "pixel_shuffle", "pixel_unshuffle"]
