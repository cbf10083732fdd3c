"""Modules of images: other orders of the same elements, normalisations, other sizes."""

from __future__ import annotations

from typing import Any

from common.core.devices import on_cpu
from common.core.docstrings import sections_of
from common.core.errors import ShapeError
from common.nn import functions as F
from common.nn.module import Module
from common.nn.normalization import _NormBase


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


class Unflatten(Module):
    """One dimension as several.

    Parameters
    ----------
    dim : the dimension.
    unflattened_size : sizes of the new ones.
    """

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        self.dim, self.unflattened_size = dim, unflattened_size

    def forward(self, input: Any) -> Any:
        """Split the dimension of input (...)."""
        return F.unflatten(input, self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class LocalResponseNorm(Module):
    """Each element divided by (k + alpha m)^beta, with the mean m of squares over neighbouring channels.

    Parameters
    ----------
    size : neighbouring channels.
    alpha, beta, k : numbers.
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Any) -> Any:
        """Normalise input (batch, channels, ...)."""
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class Softmax2d(Module):
    """Softmax over the channels of each place."""

    def forward(self, input: Any) -> Any:
        """Map input (batch, channels, height, width), or without batch.

        Raises
        ------
        ShapeError : another number of dimensions.
        """
        if input.ndim not in (3, 4):
            raise ShapeError(f"Softmax2d: expected input to be 3D or 4D, got {input.ndim}D instead")
        return F.softmax(input, -3)


class _InstanceNorm(_NormBase):
    """Normalisation of each channel of each item.

    Parameters
    ----------
    num_features : number of channels.
    eps : added to the variance.
    momentum : the batch's share in the new running statistics.
    affine : whether there are weight and bias.
    track_running_stats : whether there are running statistics, which are used outside training.
    device : the CPU.
    dtype : of the parameters, float32 by default.
    bias : whether there is a bias, if `affine`.

    Attributes
    ----------
    weight, bias : (num_features,), ones and zeros, or None.
    running_mean, running_var : (num_features,), or None.
    """

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False,
        track_running_stats: bool = False, *, device: Any = None, dtype: Any = None, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype=dtype, bias=bias)
        on_cpu(device, type(self).__name__)

    def forward(self, input: Any) -> Any:
        """Normalise input (batch, num_features, ...), or (num_features, ...).

        Raises
        ------
        ShapeError : another number of dimensions or of channels.
        """
        if input.ndim not in self.ranks:
            raise ShapeError(f"expected {' or '.join(f'{n}D' for n in self.ranks)} input (got {input.ndim}D input)")
        batch = input.ndim == self.ranks[-1]
        channels = input.shape[1 if batch else 0]
        if self.affine and channels != self.num_features:
            raise ShapeError(
                f"expected input's size at dim={1 if batch else 0} to match num_features ({self.num_features}), but "
                f"got: {channels}."
            )
        x = input if batch else input.unsqueeze(0)
        y = F.instance_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias,
            self.training or not self.track_running_stats, self.momentum or 0.0, self.eps,
        )  # fmt: skip
        return y if batch else y.squeeze(0)


@sections_of(_InstanceNorm)
class InstanceNorm1d(_InstanceNorm):
    """Normalisation of each channel of each item of (batch, channels, length), see `instance_norm`."""

    ranks = (2, 3)


@sections_of(_InstanceNorm)
class InstanceNorm2d(_InstanceNorm):
    """Normalisation of each channel of each item of (batch, channels, height, width), see `instance_norm`."""

    ranks = (3, 4)


@sections_of(_InstanceNorm)
class InstanceNorm3d(_InstanceNorm):
    """Normalisation of each channel of each item of (batch, channels, depth, height, width), see `instance_norm`."""

    ranks = (4, 5)


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
