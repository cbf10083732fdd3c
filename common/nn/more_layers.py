"""Bags of embeddings, bilinear forms, dimensions taken apart, and activations of random slopes."""

from __future__ import annotations

import math
from typing import Any

from common.core.devices import on_cpu
from common.core.errors import ArgumentError, ShapeError
from common.methods.in_place_functions import over
from common.nn import functions as F
from common.nn import init
from common.nn.distribution_losses import PairwiseDistance
from common.nn.losses import _Loss, _WeightedLoss
from common.nn.module import Module
from common.nn.reset import reset_parameters
from common.random.relaxed import rrelu
from common.tensor.leaf import Parameter


class Bilinear(Module):
    """``x1 weight[k] x2 + bias[k]`` for each k.

    Parameters
    ----------
    in1_features, in2_features, out_features : last sizes of both inputs and the output.
    bias : whether there is one.
    device : None or the CPU.
    dtype : of the parameters, float32 by default.

    Attributes
    ----------
    weight : (out_features, in1_features, in2_features), drawn from U(-k, k), k = 1 / sqrt(in1_features).
    bias : (out_features,), drawn likewise, or None.
    """

    reset_parameters = reset_parameters

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        on_cpu(device, "Bilinear")
        if in1_features <= 0:
            raise ArgumentError(f"in1_features must be > 0, but got {in1_features}")
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        bound = 1 / math.sqrt(in1_features)
        self.weight = init.uniform((out_features, in1_features, in2_features), bound, dtype)
        self.register_parameter("bias", init.uniform((out_features,), bound, dtype) if bias else None)

    def forward(self, input1: Any, input2: Any) -> Any:
        """The form of input1 (..., in1_features) and input2 (..., in2_features): (..., out_features)."""
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class EmbeddingBag(Module):
    """Rows of a table, combined bag by bag, see `embedding_bag`.

    Parameters
    ----------
    num_embeddings, embedding_dim : rows and columns of the table.
    max_norm, norm_type, scale_grad_by_freq, mode, sparse, include_last_offset, padding_idx : see `embedding_bag`.
    _weight : the table, in place of a drawn one.
    device : None or the CPU.
    dtype : of the table, float32 by default.

    Attributes
    ----------
    weight : (num_embeddings, embedding_dim), drawn from N(0, 1), 0 at `padding_idx`.
    """

    reset_parameters = reset_parameters

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, _weight: Any = None,
        include_last_offset: bool = False, padding_idx: int | None = None, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        on_cpu(device, "EmbeddingBag")
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ArgumentError(f"padding_idx must be within num_embeddings, got {padding_idx}")
        if padding_idx is not None and padding_idx < 0:
            padding_idx += num_embeddings
        self.num_embeddings, self.embedding_dim, self.max_norm = num_embeddings, embedding_dim, max_norm
        self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse = norm_type, scale_grad_by_freq, mode, sparse
        self.include_last_offset, self.padding_idx = include_last_offset, padding_idx
        if _weight is None:
            self.weight = init.normal((num_embeddings, embedding_dim), dtype)
            if padding_idx is not None:
                self.weight.payload[padding_idx] = 0
        else:
            self.weight = Parameter(_weight)

    @classmethod
    def from_pretrained(cls, embeddings: Any, freeze: bool = True, **options: Any) -> EmbeddingBag:
        """Bags over a given table (entries, width), which is trained only if not `freeze`."""
        if len(embeddings.shape) != 2:
            raise ShapeError("Embeddings parameter is expected to be 2-dimensional")
        entries, width = map(int, embeddings.shape)
        made = cls(entries, width, _weight=embeddings, **options)
        made.weight.requires_grad_(not freeze)
        return made

    def forward(self, input: Any, offsets: Any = None, per_sample_weights: Any = None) -> Any:
        """Combine the rows of input (bags, n), or (n,) with offsets (bags,): (bags, embedding_dim)."""
        return F.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode,
            self.sparse, per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """The arguments."""
        return f"{self.num_embeddings}, {self.embedding_dim}, mode={self.mode!r}"


class RReLU(Module):
    """x where x > 0, else x times a slope from [lower, upper), random in training.

    Parameters
    ----------
    lower, upper : bounds of the slope.
    inplace : whether the input itself is changed.
    """

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input: Any) -> Any:
        """rrelu(input), input (...)."""
        given = self.lower, self.upper, self.training
        return over("rrelu", rrelu, input, *given) if self.inplace else rrelu(input, *given)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"lower={self.lower}, upper={self.upper}{', inplace=True' if self.inplace else ''}"


class MultiMarginLoss(_WeightedLoss):
    """Margins between the class and all others, see `multi_margin_loss`.

    Parameters
    ----------
    p : 1 or 2.
    margin : how far the class should be above others.
    weight : (classes,) factor of each class, or None.
    reduction : "mean", "sum" or "none".

    Raises
    ------
    ArgumentError : another `p`.
    """

    def __init__(self, p: int = 1, margin: float = 1.0, weight: Any = None, *, reduction: str = "mean") -> None:
        super().__init__(weight, reduction=reduction)
        if p not in (1, 2):
            raise ArgumentError("only p == 1 and p == 2 supported")
        self.p, self.margin = p, margin

    def forward(self, input: Any, target: Any) -> Any:
        """Loss of input (batch, classes) for target (batch,)."""
        return F.multi_margin_loss(input, target, self.p, self.margin, self.weight, self.reduction)


class MultiLabelMarginLoss(_Loss):
    """Margins between classes of the target and others, see `multilabel_margin_loss`.

    Parameters
    ----------
    reduction : "mean", "sum" or "none".
    """

    def forward(self, input: Any, target: Any) -> Any:
        """Loss of input (batch, classes) for target (batch, classes), classes up to the first negative."""
        return F.multilabel_margin_loss(input, target, self.reduction)


class TripletMarginWithDistanceLoss(_Loss):
    """How far negatives are from anchors, beyond positives, by any distance.

    Parameters
    ----------
    distance_function : of two tensors; the Euclidean distance by default.
    margin : number > 0.
    swap : take d(positive, negative) where it is smaller than d(anchor, negative).
    reduction : "mean", "sum" or "none".
    """

    def __init__(
        self, *, distance_function: Any = None, margin: float = 1.0, swap: bool = False, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction)
        if margin <= 0:
            raise ArgumentError(f"TripletMarginWithDistanceLoss: expected margin to be greater than 0, got {margin}")
        self.distance_function = PairwiseDistance() if distance_function is None else distance_function
        self.margin, self.swap = margin, swap

    def forward(self, anchor: Any, positive: Any, negative: Any) -> Any:
        """Loss of vectors (..., k): () or, unreduced, (...)."""
        return F.triplet_margin_with_distance_loss(
            anchor, positive, negative, distance_function=self.distance_function, margin=self.margin, swap=self.swap,
            reduction=self.reduction,
        )  # fmt: skip
