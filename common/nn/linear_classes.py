"""A linear layer and the cross entropy of its classes, as one module."""

from __future__ import annotations

from math import prod
from typing import Any

from common.core.errors import ArgumentError, ShapeError
from common.core.int_arguments import integer, integers
from common.nn import functions as F
from common.nn.layers import Linear
from common.nn.losses import _Loss


class LinearCrossEntropyLoss(_Loss):
    """The cross entropy of classes whose logits a linear layer gives; see `linear_cross_entropy`.

    Parameters
    ----------
    in_features : size of the last dimension of the input.
    num_classes : how many classes.
    out_features : further sizes of the target, (...).
    bias : whether the layer has one.
    device : the CPU.
    dtype : of the parameters, float32 by default.
    reduction : "mean", "sum" or "none".
    weight : (classes,) factor of each class's loss, or None.
    ignore_index : a target that counts as no loss.
    label_smoothing : the part of a target's probability that is spread evenly over all classes.
    options : accepted; it changes nothing.

    Attributes
    ----------
    linear : the layer, of num_classes times the product of `out_features` outputs.
    """

    def __init__(
        self, in_features: int, num_classes: int, *, out_features: tuple[int, ...] = (), bias: bool = False,
        device: Any = None, dtype: Any = None, reduction: str = "mean", weight: Any = None,
        ignore_index: int | None = None, label_smoothing: float = 0.0, options: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(reduction=reduction)
        name = type(self).__name__
        num_classes, out_features = (
            integer(num_classes, name, "num_classes"),
            integers(out_features, name, "out_features"),
        )
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise ShapeError(f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if not 0 <= label_smoothing <= 1:
            raise ArgumentError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        self._hold(weight=weight)
        self.num_classes, self.out_features = num_classes, out_features
        self.ignore_index, self.label_smoothing, self.options = ignore_index, label_smoothing, options
        self.linear = Linear(in_features, prod(self.out_features, start=num_classes), bias, device, dtype)

    def extra_repr(self) -> str:
        """The options, as text."""
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, out_features={self.out_features}, "
            f"bias={self.linear.bias is not None}, reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )

    def forward(self, input: Any, target: Any) -> Any:
        """Loss of input (batch, in_features) for target (batch, ...), int64 or int32, or probabilities."""
        outputs = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return F.linear_cross_entropy(
            input, self.linear.weight.reshape(*outputs, self.linear.in_features), target,
            linear_bias=None if bias is None else bias.reshape(outputs), weight=self.weight, reduction=self.reduction,
            ignore_index=self.ignore_index, label_smoothing=self.label_smoothing,
        )  # fmt: skip
