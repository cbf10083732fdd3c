"""Normalisations: to length 1, by the root mean square, over groups of channels, over the batch; and attention."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from common.core.aliases import accept_numpy_names
from common.core.dtypes import refuse
from common.core.errors import ArgumentError, ShapeError
from common.core.int_arguments import integer, integers
from common.ops._define import composite
from common.ops._samples import away_from_zero
from common.ops.math.arithmetic import rsqrt
from common.ops.math.cast import clone
from common.ops.math.compare import clamp_min
from common.ops.reduce.norms import norm
from common.ops.reduce.reductions import mean_
from common.ops.reduce.softmax import affine_normalize_, normalize_, require_ending
from common.ops.reduce.statistics import variance_around
from common.ops.shape.view import reshape


@accept_numpy_names
def normalize(x: Any, p: float = 2.0, dim: Any = 1, eps: float = 1e-12) -> Any:
    """`x` divided by its p-norm along `dim`, or by `eps` where that is larger.

    Parameters
    ----------
    x : (...), floating point.
    p : see `norm`.
    dim : the dimension, or several.
    eps : least divisor.

    Raises
    ------
    DTypeError : `x` is not floating point.
    IndexRangeError : a dimension that does not exist.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.nn.functional.normalize(tw.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    return x / clamp_min(norm(x, p, dim, keepdim=True), eps)


def rms_norm(x: Any, normalized_shape: Any, weight: Any = None, eps: Any = None) -> Any:
    """``x * rsqrt(mean(x^2) + eps)`` over the last dimensions, then scaled.

    Parameters
    ----------
    x : (..., *normalized_shape), floating point.
    normalized_shape : sizes of the last dimensions, or one.
    weight : (*normalized_shape), or None.
    eps : added to the mean; by default the distance from 1 to the next number of the dtype.

    Raises
    ------
    ShapeError : `x` does not end in `normalized_shape`, or `weight` has another shape.

    References
    ----------
    Zhang, Sennrich, Root mean square layer normalization, 2019.
    """
    refuse("rms_norm", x)
    sizes = integers(normalized_shape, "rms_norm", "normalized_shape")
    require_ending("rms_norm", x, sizes, weight=weight)
    least = float(np.finfo(x.dtype).eps) if eps is None else eps
    y = x * rsqrt(mean_(x * x, dim=tuple(range(x.ndim - len(sizes), x.ndim)), keepdim=True) + least)
    return y if weight is None else y * weight


def require_per_channel(name: str, x: Any, **given: Any) -> None:
    """Refuse vectors without one number per channel of `x` (batch, channels, ...); None passes.

    Raises
    ------
    ShapeError : not one per channel.
    """
    for what, t in given.items():
        if t is not None and (t.ndim != 1 or t.shape[0] != x.shape[1]):
            raise ShapeError(
                f"{name}(): Expected {what} to be a vector of size equal to the number of channels in input, but got "
                f"{what} of shape {list(t.shape)} and input of shape {list(x.shape)}"
            )


def beside(x: Any, t: Any) -> Any:
    """Numbers per channel in a shape that broadcasts to `x`; None stays."""
    return t if t is None or x.ndim == 2 else reshape(t, (x.shape[1], *(1,) * (x.ndim - 2)))


def _of_channels(*operands: int) -> Any:
    """Samples of images, and of numbers per channel in the place of other operands."""

    def samples(rng: Any, dtype: Any) -> list[Any]:
        forms = [((4, 3), (3,)), ((2, 3, 5), (3, 1)), ((2, 3, 2, 2), (3, 1, 1))]
        return [
            (tuple(away_from_zero(rng, (x, per)[i], dtype) for i in operands), {}) for x, per in forms
        ]  # fmt: skip

    return samples


scale_shift_ = composite(
    "scale_shift", lambda x, weight, bias: x * weight + bias,
    (lambda g, weight: g * weight, lambda g, x: g * x, lambda g: g), inputs=("x", "weight", "bias"),
    samples=_of_channels(0, 1, 1), doc="x weight + bias. d/dx = weight, d/dweight = x, d/dbias = 1.",
)  # fmt: skip

normalize_by_ = composite(
    "normalize_by", lambda x, mean, rstd, weight, bias: (x - mean) * rstd * weight + bias,
    (lambda g, rstd, weight: g * weight * rstd, lambda g, rstd, weight: -(g * weight * rstd),
     lambda g, x, mean, weight: g * weight * (x - mean), lambda g, x, mean, rstd: g * ((x - mean) * rstd), lambda g: g),
    inputs=("x", "mean", "rstd", "weight", "bias"), samples=_of_channels(0, 1, 1, 1, 1),
    doc="n weight + bias, n = (x - mean) rstd. d/dx = rstd weight, d/dmean = -rstd weight, "
        "d/drstd = (x - mean) weight, d/dweight = n, d/dbias = 1.",
)  # fmt: skip


def affine(y: Any, weight: Any, bias: Any) -> Any:
    """y weight + bias, without what is None."""
    if weight is not None and bias is not None:
        return scale_shift_(y, weight, bias)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def by_statistics(x: Any, mean: Any, variance: Any, weight: Any, bias: Any, eps: Any) -> Any:
    """`x` normalised by numbers per channel, scaled and shifted by what is not None."""
    mean, variance, weight, bias = (beside(x, t) for t in (mean, variance, weight, bias))
    rstd = rsqrt(variance + eps)
    if weight is not None and bias is not None:
        return normalize_by_(x, mean, rstd, weight, bias)
    return affine((x - mean) * rstd, weight, bias)


def group_norm(x: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    """`x` normalised to mean 0 and variance 1 over groups of channels, then scaled and shifted.

    Parameters
    ----------
    x : (batch, channels, ...), floating point.
    num_groups : in how many groups the channels fall.
    weight, bias : (channels,), or None.
    eps : added to the variance.

    Raises
    ------
    ShapeError : the groups do not divide the channels, each has one value, or `weight` or `bias` has another shape.

    References
    ----------
    Wu, He, Group normalization, 2018.
    """
    return group_norms(x, num_groups, weight, bias, eps)[0]


def group_norms(x: Any, num_groups: int, weight: Any, bias: Any, eps: float) -> Any:
    """The result of `group_norm`, the means and the reciprocals of the deviations."""
    if x.ndim < 2:
        raise ShapeError(f"group_norm(): Expected at least 2 dimensions for input tensor but received {x.ndim}")
    groups = integer(num_groups, "group_norm", "num_groups")
    channels = x.shape[1]
    if groups <= 0:
        raise ArgumentError(f"group_norm(): Expected num groups to be greater than 0, got {groups}")
    if channels % groups != 0:
        raise ShapeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(x.shape)} and num_groups={groups}"
        )
    refuse("group_norm", x)
    if math.prod(x.shape) == groups:
        raise ShapeError(f"Expected more than 1 value per channel when training, got input size {list(x.shape)}")
    require_per_channel("group_norm", x, weight=weight, bias=bias)
    apart = reshape(x, (x.shape[0], groups, channels // groups, *x.shape[2:]))
    y, mean, rstd = normalize_(apart, dim=tuple(range(2, apart.ndim)), eps=eps)
    return affine(reshape(y, x.shape), beside(x, weight), beside(x, bias)), mean, rstd


def batch_norm(
    x: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    """`x` normalised per channel: over the batch in training, else by running statistics; then scaled and shifted.

    Parameters
    ----------
    x : (batch, channels, ...), floating point.
    running_mean, running_var : (channels,), or None in training, where they move towards the batch's mean and unbiased
        variance.
    weight, bias : (channels,), or None.
    training : which statistics are used.
    momentum : the batch's share in the new running statistics.
    eps : added to the variance.

    Raises
    ------
    ShapeError : a vector without one number per channel, or one value per channel in training.
    ArgumentError : no running statistics outside training; `eps` not positive in training, or negative.

    References
    ----------
    Ioffe, Szegedy, Batch normalization, 2015.
    """
    if x.ndim == 1 and x.shape[0] == 0:  # nothing, of no channels
        return clone(x)
    if training:
        if isinstance(eps, (int, float)) and eps <= 0:
            raise ArgumentError(f"batch_norm eps must be positive during training, but got {eps}")
        return of_the_batch(x, running_mean, running_var, weight, bias, momentum, eps)[0]
    _require_channels(x, running_mean, running_var, weight, bias)
    if running_mean is None or running_var is None:
        raise ArgumentError("batch_norm(): Expected running_mean and running_var to be defined when training=False")
    if isinstance(eps, (int, float)) and eps < 0:
        raise ArgumentError(f"batch_norm eps must be non-negative, but got {eps}")
    return by_statistics(x, running_mean, running_var, weight, bias, eps)


def _require_channels(x: Any, running_mean: Any, running_var: Any, weight: Any, bias: Any) -> None:
    if x.ndim < 2:
        raise ShapeError(f"batch_norm(): expected (batch, channels, ...), got {x.ndim} dimensions")
    refuse("batch_norm", x)
    require_per_channel(
        "batch_norm", x, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias
    )


def of_the_batch(
    x: Any, running_mean: Any, running_var: Any, weight: Any, bias: Any, momentum: float, eps: float
) -> tuple[Any, Any, Any]:
    """`x` normalised over the batch, scaled and shifted; the batch's mean and the reciprocal of its deviation.

    The running statistics move, see `batch_norm`.
    """
    _require_channels(x, running_mean, running_var, weight, bias)
    dims = (0, *range(2, x.ndim))
    if all(isinstance(x.shape[d], int) and x.shape[d] == 1 for d in dims):
        raise ShapeError(f"Expected more than 1 value per channel when training, got input size {list(x.shape)}")
    scale, shift = beside(x, weight), beside(x, bias)
    if scale is not None and shift is not None:
        y, mean, rstd = affine_normalize_(x, scale, shift, dim=dims, eps=eps)
    else:
        y, mean, rstd = normalize_(x, dim=dims, eps=eps)
        y = affine(y, scale, shift)
    if running_mean is not None and 0 not in x.shape:  # of no elements there are no statistics
        plain, centre = (z.detach() if hasattr(z, "detach") else z for z in (x, mean))
        running_mean.copy_(running_mean * (1 - momentum) + reshape(centre, running_mean.shape) * momentum)
        running_var.copy_(running_var * (1 - momentum) + variance_around(plain, centre, dims) * momentum)
    return y, mean, rstd


__all__ = ["batch_norm", "group_norm", "normalize", "rms_norm"]
