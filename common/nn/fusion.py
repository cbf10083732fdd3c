"""A normalisation in evaluation is a line per channel, which the weights of the layer before can take over."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from common.core import mode
from common.core.errors import StateError
from common.nn import functions as F
from common.nn.module import Module
from common.tensor.leaf import Parameter


def _line(mean: Any, var: Any, eps: float, weight: Any, bias: Any) -> tuple[Any, Any]:
    """The slope and the intercept (channels,) of a normalisation."""
    slope = F.rsqrt(var + eps)
    slope = slope if weight is None else slope * weight
    return slope, (0 if bias is None else bias) - mean * slope


def _fused(weight: Any, bias: Any, dim: int, *norm: Any) -> tuple[Parameter, Parameter]:
    with mode.GradSwitch(False):
        slope, intercept = _line(*norm)
        new = weight * F.reshape(slope, [-1 if i == dim else 1 for i in range(weight.ndim)])
        intercept = intercept if bias is None else intercept + bias * slope
        trained = weight.requires_grad, weight.requires_grad if bias is None else bias.requires_grad
        return Parameter(new.to(weight.dtype), trained[0]), Parameter(intercept.to(weight.dtype), trained[1])


def fuse_conv_bn_weights(
    conv_w: Any, conv_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any, transpose: bool = False
) -> tuple[Parameter, Parameter]:
    """Weight and bias of a convolution that does what one and a normalisation behind it do.

    Parameters
    ----------
    conv_w : (out, in / groups, ...), of a transposed one (in, out, ...).
    conv_b : (out,) or None.
    bn_rm, bn_rv : (out,) running mean and variance.
    bn_eps : what is added to the variance.
    bn_w, bn_b : (out,), or None for 1 and 0.
    transpose : whether it is a transposed convolution.
    """
    return _fused(conv_w, conv_b, 1 if transpose else 0, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def fuse_linear_bn_weights(
    linear_w: Any, linear_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any
) -> tuple[Parameter, Parameter]:
    """Weight and bias of a linear layer that does what one and a normalisation behind it do.

    Parameters
    ----------
    linear_w : (out, in)
    linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b : as of `fuse_conv_bn_weights`.
    """
    return _fused(linear_w, linear_b, 0, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def _copied(layer: Module, norm: Any, transpose: bool) -> Any:
    if layer.training or norm.training:
        raise StateError("Fusion only for eval!")
    if norm.running_mean is None or norm.running_var is None:
        raise StateError(f"{type(norm).__name__} has no running statistics: nothing is known of other batches")
    made: Any = deepcopy(layer)
    statistics = norm.running_mean, norm.running_var, norm.eps, norm.weight, norm.bias
    made.weight, made.bias = _fused(made.weight, made.bias, 1 if transpose else 0, *statistics)
    return made


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A convolution that does what one and a BatchNorm behind it do, both in evaluation.

    Parameters
    ----------
    conv, bn : the layers, which stay as they are.
    transpose : whether it is a transposed convolution.

    Raises
    ------
    StateError : a layer is in training, or the normalisation has no running statistics.

    Examples
    --------
    >>> import dynamic as tw
    >>> conv, norm = tw.nn.Conv2d(1, 2, 3).eval(), tw.nn.BatchNorm2d(2).eval()
    >>> fused, x = tw.nn.utils.fuse_conv_bn_eval(conv, norm), tw.randn(1, 1, 5, 5)
    >>> tw.allclose(fused(x), norm(conv(x)), atol=1e-6)
    True
    """
    return _copied(conv, bn, transpose)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A linear layer that does what one and a BatchNorm behind it do, both in evaluation.

    Parameters
    ----------
    linear, bn : the layers, which stay as they are.

    Raises
    ------
    StateError : see `fuse_conv_bn_eval`; or the normalisation has another number of features than the layer gives.
    """
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise StateError("To fuse, linear.out_features == bn.num_features or bn.num_features == 1")
    return _copied(linear, bn, False)


__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]
