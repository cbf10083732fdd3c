"""Normalisations that return the mean and the reciprocal of the deviation too, by PyTorch's names."""

from __future__ import annotations

from typing import Any

from common.core.errors import ShapeError
from common.ops.create.creation import zeros
from common.ops.reduce.normalization import batch_norm, group_norms, of_the_batch
from common.ops.reduce.softmax import layer_norms
from common.ops.shape.view import reshape
from common.tensor.create import lift


def native_layer_norm(x: Any, normalized_shape: Any, weight: Any, bias: Any, eps: float) -> tuple[Any, Any, Any]:
    """`layer_norm`, and the mean and 1 / sqrt(variance + eps) of each row, with sizes 1 at the end, as constants.

    Parameters
    ----------
    x, normalized_shape, weight, bias, eps : see `layer_norm`.

    Raises
    ------
    ShapeError : as `layer_norm`.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.native_layer_norm(tw.tensor([[1.0, 3.0]]), 2, None, None, 0.0)
    (tensor([[-1.,  1.]]), tensor([[2.]]), tensor([[1.]]))
    """
    y, mean, rstd = layer_norms(x, normalized_shape, weight, bias, eps)
    return y, mean.detach(), rstd.detach()


def native_group_norm(
    x: Any, weight: Any, bias: Any, N: int, C: int, HxW: int, group: int, eps: float
) -> tuple[Any, Any, Any]:
    """`group_norm`, and the mean and 1 / sqrt(variance + eps) of each group of channels.

    Parameters
    ----------
    x, weight, bias, eps : see `group_norm`.
    N, C, HxW : the batch, the channels and the elements of each, which `x` has.
    group : in how many groups the channels fall.

    Raises
    ------
    ShapeError : as `group_norm`, or `x` has other sizes.
    """
    if x.ndim < 2 or x.shape[0] != N or x.shape[1] != C or x.numel() != N * C * HxW:
        raise ShapeError(f"native_group_norm(): Expected an input of {N} x {C} x {HxW} elements, got {tuple(x.shape)}")
    y, mean, rstd = group_norms(x, group, weight, bias, eps)
    return y, reshape(mean, (N, group)), reshape(rstd, (N, group))


def native_batch_norm(
    x: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: float, eps: float
) -> tuple[Any, Any, Any]:
    """`batch_norm`, and in training the batch's mean and 1 / sqrt(variance + eps), constants; else two empty tensors.

    Parameters
    ----------
    x, weight, bias, running_mean, running_var, training, momentum, eps : see `batch_norm`.

    Raises
    ------
    ShapeError, ArgumentError : as `batch_norm`.
    """
    if not training:
        y = batch_norm(x, running_mean, running_var, weight, bias, False, momentum, eps)
        return y, lift(zeros(0, dtype=x.dtype)), lift(zeros(0, dtype=x.dtype))
    y, mean, rstd = of_the_batch(x, running_mean, running_var, weight, bias, momentum, eps)
    return y, *(reshape(z.detach(), (x.shape[1],)) for z in (mean, rstd))


__all__ = ["native_batch_norm", "native_group_norm", "native_layer_norm"]
