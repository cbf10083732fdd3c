"""Images with their elements in another order, or of another size, as modules."""

from __future__ import annotations

from typing import Any

from common.nn import functions as F
from common.nn.module import Module


class PixelShuffle(Module):
    """Channels spread over larger images: (..., c r^2, h, w) as (..., c, h r, w r).

    Parameters
    ----------
    upscale_factor : r.
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Any) -> Any:
        """Map input (..., c r^2, h, w) to (..., c, h r, w r)."""
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        """The argument."""
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """The inverse of `PixelShuffle`.

    Parameters
    ----------
    downscale_factor : r.
    """

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Any) -> Any:
        """Map input (..., c, h r, w r) to (..., c r^2, h, w)."""
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        """The argument."""
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """Channels of all groups in turn.

    Parameters
    ----------
    groups : how many.
    """

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Any) -> Any:
        """Reorder the channels of input (batch, channels, ...)."""
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        """The argument."""
        return f"groups={self.groups}"


class Upsample(Module):
    """Images of other sizes, see `interpolate`.

    Parameters
    ----------
    size : of the result; an int, or one per dimension.
    scale_factor : or how many times as large it is.
    mode : "nearest", "linear", "bilinear", "bicubic" or "trilinear".
    align_corners : whether the centres of the corners stay where they are.
    recompute_scale_factor : whether the scale follows from the sizes.
    """

    def __init__(
        self, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: Any = None,
        recompute_scale_factor: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.size, self.mode, self.align_corners = size, mode, align_corners
        each = isinstance(scale_factor, (tuple, list))
        self.scale_factor = tuple(map(float, scale_factor)) if each else float(scale_factor) if scale_factor else None
        self.recompute_scale_factor, self.name = recompute_scale_factor, type(self).__name__

    def forward(self, input: Any) -> Any:
        """Map input (batch, channels, ...) to images of the size."""
        return F.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor
        )

    def extra_repr(self) -> str:
        """The arguments."""
        size = f"size={self.size}" if self.scale_factor is None else f"scale_factor={self.scale_factor}"
        return f"{size}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Images of other sizes, each element that of the nearest place.

    Parameters
    ----------
    size, scale_factor : see `Upsample`.
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Images of other sizes, by bilinear interpolation between corners that stay.

    Parameters
    ----------
    size, scale_factor : see `Upsample`.
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
