"""instance_norm and local_response_norm."""

from __future__ import annotations

from typing import Any

from common.core.dispatch import called
from common.core.errors import ArgumentError, ShapeError
from common.core.int_arguments import integer
from common.core.spec import numel
from common.ops.image.pooling import require_means
from common.ops.image.windows import window_sum_
from common.ops.math.arithmetic import pow
from common.ops.reduce.normalization import affine, beside, by_statistics, require_per_channel
from common.ops.reduce.reductions import mean
from common.ops.reduce.softmax import normalize_
from common.ops.reduce.statistics import var
from common.ops.shape.view import reshape


def instance_norm(
    x: Any, running_mean: Any = None, running_var: Any = None, weight: Any = None, bias: Any = None,
    use_input_stats: bool = True, momentum: Any = 0.1, eps: float = 1e-5,
) -> Any:  # fmt: skip
    """Each channel of each item normalised to mean 0 and variance 1, then scaled and shifted.

    Parameters
    ----------
    x : (batch, channels, ...), floating point.
    running_mean, running_var : (channels,), or None; moved towards the means over the batch, in place, where the input
        gives the statistics; else they are the statistics.
    weight, bias : (channels,), or None.
    use_input_stats : whether the input gives the statistics.
    momentum : the share of this batch in the new running statistics.
    eps : added to the variance.

    Raises
    ------
    ShapeError : a vector without one number per channel, or one element per channel.
    ArgumentError : no statistics at all.

    References
    ----------
    Ulyanov, Vedaldi, Lempitsky, Instance normalization, 2016.
    """
    if x.ndim < 2:
        raise ShapeError(f"instance_norm(): expected (batch, channels, ...), got {x.ndim} dimensions")
    if use_input_stats:
        size = numel(x.shape[2:])
        if isinstance(size, int) and size == 1:
            raise ShapeError(f"Expected more than 1 spatial element when training, got input size {list(x.shape)}")
    require_per_channel(
        "instance_norm", x, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias
    )
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise ArgumentError(
                "instance_norm(): Expected running_mean and running_var to be defined when use_input_stats=False"
            )
        return by_statistics(x, running_mean, running_var, weight, bias, eps)
    dims = tuple(range(2, x.ndim))
    if running_mean is not None and running_var is not None and not any(n == 0 for n in x.shape):
        plain = x.detach() if hasattr(x, "detach") else x
        running_mean.copy_(running_mean * (1 - momentum) + mean(mean(plain, dims), 0) * momentum)
        running_var.copy_(running_var * (1 - momentum) + mean(var(plain, dims), 0) * momentum)
    return affine(normalize_(x, dim=dims, eps=eps)[0], beside(x, weight), beside(x, bias))


def local_response_norm(x: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Any:
    """Each element divided by (k + alpha m)^beta, with the mean m of squares over `size` neighbouring channels.

    Channels that are not there count as zeros.

    Parameters
    ----------
    x : (batch, channels, ...), of three dimensions or more.
    size : neighbouring channels.
    alpha, beta, k : numbers.

    Raises
    ------
    ShapeError : fewer than three dimensions.
    ArgumentError : a size below 1.

    References
    ----------
    Krizhevsky, Sutskever, Hinton, ImageNet classification with deep convolutional neural networks, 2012.
    """
    size = integer(size, "local_response_norm", "size")
    if x.ndim < 3:
        raise ShapeError(f"Expected 3D or higher dimensionality input (got {x.ndim} dimensions)")
    if size <= 0:
        raise ArgumentError(f"local_response_norm(): size must be positive, got {size}")
    require_means("local_response_norm", x)
    n, c, l = x.shape[0], x.shape[1], numel(x.shape[2:])
    total = window_sum_(
        reshape(x * x, (n, 1, c, 1, l)), size=(size, 1, 1), count=(c, 1, l), stride=(1, 1, 1),
        padding=(size // 2, 0, 0), dilation=(1, 1, 1),
    )  # fmt: skip
    return called(x / pow(reshape(total, x.shape) / size * alpha + k, beta), "DivBackward0")


__all__ = ["instance_norm", "local_response_norm"]
