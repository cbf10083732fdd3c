"""Normalisations as modules."""

from __future__ import annotations

from typing import Any

import numpy as np

from common.core import mode
from common.core.devices import on_cpu
from common.core.docstrings import sections_of
from common.core.dtypes import default_float
from common.core.errors import ArgumentError, ShapeError
from common.core.int_arguments import integer, members
from common.nn import functions as F
from common.nn import init
from common.nn.module import Module
from common.nn.reset import reset_parameters
from common.tensor.leaf import Buffer


class RMSNorm(Module):
    """Division by the root mean square over the last dimensions, with scale.

    Parameters
    ----------
    normalized_shape : sizes of the last dimensions.
    eps : added to the mean square; by default the distance from 1 to the next number.
    elementwise_affine : whether there is a weight.
    device : the CPU.
    dtype : of the weight, float32 by default.

    Attributes
    ----------
    weight : (*normalized_shape), ones, or None.
    """

    reset_parameters = reset_parameters

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        on_cpu(device, type(self).__name__)
        one = isinstance(normalized_shape, int)
        shape = (normalized_shape,) if one else tuple(members(normalized_shape, "RMSNorm", "normalized_shape"))
        self.normalized_shape, self.eps, self.elementwise_affine = shape, eps, elementwise_affine
        self.weight = init.constant(shape, 1, dtype) if elementwise_affine else None

    def forward(self, input: Any) -> Any:
        """Normalise input (..., *normalized_shape)."""
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Module):
    """Normalisation over groups of channels, with scale and shift.

    Parameters
    ----------
    num_groups, num_channels : the first divides the second.
    eps : added to the variance.
    affine : whether there are weight and bias.
    device : the CPU.
    dtype : of the parameters, float32 by default.
    bias : whether there is a bias, if `affine`.

    Attributes
    ----------
    weight, bias : (num_channels,), ones and zeros, or None.

    Raises
    ------
    ArgumentError : the groups do not divide the channels.
    """

    reset_parameters = reset_parameters

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        bias: bool = True,
    ) -> None:
        super().__init__()
        on_cpu(device, type(self).__name__)
        num_groups, num_channels = (
            integer(n, "GroupNorm", name) for n, name in ((num_groups, "num_groups"), (num_channels, "num_channels"))
        )
        if num_groups < 1 or num_channels % num_groups:
            raise ArgumentError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self.weight = init.constant(num_channels, 1, dtype) if affine else None
        self.bias = init.constant(num_channels, 0, dtype) if affine and bias else None

    def forward(self, input: Any) -> Any:
        """Normalise input (batch, num_channels, ...)."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The arguments."""
        shown = f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"
        return f"{shown}, bias={self.bias is not None}"


class _NormBase(Module):
    ranks: tuple[int, ...] = ()
    _version = 2

    reset_parameters = reset_parameters

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        bias: bool = True,
    ) -> None:
        super().__init__()
        on_cpu(device, type(self).__name__)
        kind = dtype or default_float()
        num_features = integer(num_features, type(self).__name__, "num_features")
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self.weight = init.constant(num_features, 1, kind) if affine else None
        self.bias = init.constant(num_features, 0, kind) if affine and bias else None
        self.running_mean = Buffer.over(init.filled(num_features, 0, kind)) if track_running_stats else None
        self.running_var = Buffer.over(init.filled(num_features, 1, kind)) if track_running_stats else None
        self.num_batches_tracked = Buffer(np.zeros((), np.int64)) if track_running_stats else None

    def _check_input_dim(self, input: Any) -> None:
        """Refuse an input of another number of dimensions; classes of users say of which, as in PyTorch."""
        if self.ranks and input.ndim not in self.ranks:
            raise ShapeError(f"expected {' or '.join(f'{n}D' for n in self.ranks)} input (got {input.ndim}D input)")

    def reset_running_stats(self) -> None:
        """Let the running statistics begin anew: mean 0, variance 1, no batches; nothing where there are none."""
        with mode.no_grad():
            for leaf, value in ((self.running_mean, 0), (self.running_var, 1), (self.num_batches_tracked, 0)):
                if leaf is not None:
                    leaf.fill_(value)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, *lists: Any) -> None:
        """State of PyTorch before 0.4.1, or without versions, need not count batches."""
        key = f"{prefix}num_batches_tracked"
        if local_metadata.get("version", 0) < 2 and self.num_batches_tracked is not None and key not in state_dict:
            state_dict[key] = np.zeros((), np.int64)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *lists)

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_NormBase):
    def forward(self, input: Any) -> Any:
        """Normalise input (batch, num_features, ...): by the batch in training, else by what training has seen.

        Raises
        ------
        ShapeError : another number of dimensions, or one value per channel in training.
        """
        self._check_input_dim(input)
        follows = self.training and self.track_running_stats
        if follows and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
        batch = self.training or self.running_mean is None
        running = (self.running_mean, self.running_var) if not batch or follows else (None, None)
        share = self.momentum
        if share is None:  # the average of all batches so far
            share = 1.0 / self.num_batches_tracked.to(np.float64) if self.num_batches_tracked is not None else 0.0
        return F.batch_norm(input, *running, self.weight, self.bias, batch, share, self.eps)


class BatchNorm1d(_BatchNorm):
    """Normalisation of each channel of (batch, channels) or (batch, channels, length), with scale and shift.

    Parameters
    ----------
    num_features : number of channels.
    eps : added to the variance.
    momentum : the batch's share in the new running statistics; None averages all batches.
    affine : whether there are weight and bias.
    track_running_stats : whether mean and variance are kept for the time after training.
    device : the CPU.
    dtype : of parameters and statistics, float32 by default.
    bias : whether there is a bias, if `affine`.

    Attributes
    ----------
    weight, bias : (num_features,), ones and zeros, or None.
    running_mean, running_var, num_batches_tracked : what training has seen, or None.
    """

    ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """`BatchNorm1d` of (batch, channels, height, width).

    Parameters
    ----------
    num_features : number of channels.
    eps : added to the variance.
    momentum : the batch's share in the new running statistics; None averages all batches.
    affine : whether there are weight and bias.
    track_running_stats : whether mean and variance are kept for the time after training.
    device : the CPU.
    dtype : of parameters and statistics, float32 by default.
    bias : whether there is a bias, if `affine`.
    """

    ranks = (4,)


@sections_of(BatchNorm2d)
class BatchNorm3d(_BatchNorm):
    """`BatchNorm1d` of (batch, channels, depth, height, width)."""

    ranks = (5,)


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
        track_running_stats: bool = False, device: Any = None, dtype: Any = None, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype=dtype, bias=bias)
        on_cpu(device, type(self).__name__)

    def forward(self, input: Any) -> Any:
        """Normalise input (batch, num_features, ...), or (num_features, ...).

        Raises
        ------
        ShapeError : another number of dimensions or of channels.
        """
        self._check_input_dim(input)
        batch = not self.ranks or input.ndim == self.ranks[-1]
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
