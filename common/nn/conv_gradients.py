"""Gradients of convolutions as functions: PyTorch's ``nn.grad``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from common.ops.create.creation import zeros
from common.ops.image import conv
from common.ops.image.geometry import documented
from common.transforms.grad import vjp

_INPUT = """The gradient of `conv{n}d` with respect to its input.

    Parameters
    ----------
    input_size : shape of the input, (batch, channels, {sizes}).
    weight : (out, channels / groups, {kernel}).
    grad_output : gradient of the result.
    stride, padding, dilation, groups : those of the convolution.

    Returns
    -------
    tensor : of shape `input_size`.

    Raises
    ------
    ShapeError : sizes that do not fit.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.nn.grad.conv{n}d_input((1, 2{fives}), tw.ones(2, 2{threes}), tw.ones(1, 2{results}), padding=1).shape
    torch.Size([1, 2{fives}])
    """
_WEIGHT = """The gradient of `conv{n}d` with respect to its weights.

    Parameters
    ----------
    input : (batch, channels, {sizes}).
    weight_size : shape of the weights, (out, channels / groups, {kernel}).
    grad_output : gradient of the result.
    stride, padding, dilation, groups : those of the convolution.

    Returns
    -------
    tensor : of shape `weight_size`.

    Raises
    ------
    ShapeError : sizes that do not fit.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.nn.grad.conv{n}d_weight(tw.ones(1, 2{fives}), (2, 2{threes}), tw.ones(1, 2{results}), padding=1).shape
    torch.Size([2, 2{threes}])
    """


def _pulled(function: Callable[[Any], Any], size: Any, grad_output: Any) -> Any:
    """The gradient of a linear function of a tensor of this size."""
    _, pullback = vjp(function, zeros(*size, dtype=grad_output.dtype))
    (gradient,) = pullback(grad_output)
    return gradient


def _gradients(n: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The two functions for images of `n` dimensions."""
    convolve = getattr(conv, f"conv{n}d")

    @documented(n, _INPUT, 5)
    def to_input(
        input_size: Any, weight: Any, grad_output: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1,
    ) -> Any:  # fmt: skip
        options = (None, stride, padding, dilation, groups)
        return _pulled(lambda x: convolve(x, weight, *options), input_size, grad_output)

    @documented(n, _WEIGHT, 5)
    def to_weight(
        input: Any, weight_size: Any, grad_output: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1,
    ) -> Any:  # fmt: skip
        options = (None, stride, padding, dilation, groups)
        return _pulled(lambda w: convolve(input, w, *options), weight_size, grad_output)

    for function, of in ((to_input, "input"), (to_weight, "weight")):
        function.__name__ = function.__qualname__ = f"conv{n}d_{of}"
    return to_input, to_weight


conv1d_input, conv1d_weight = _gradients(1)
conv2d_input, conv2d_weight = _gradients(2)
conv3d_input, conv3d_weight = _gradients(3)

__all__ = [
    "conv1d_input",
    "conv1d_weight",
    "conv2d_input",
    "conv2d_weight",
    "conv3d_input",
    "conv3d_weight",
]
