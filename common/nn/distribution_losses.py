"""Losses of distributions, of distances and of many labels, and a distance, as modules."""

from __future__ import annotations

from typing import Any

from common.core.errors import ArgumentError
from common.nn import functions as F
from common.nn.losses import _Loss, _WeightedLoss
from common.nn.module import Module


class PoissonNLLLoss(_Loss):
    """Minus the log-likelihood of Poisson distributions.

    Parameters
    ----------
    log_input : whether inputs are logarithms of rates.
    full : add Stirling's approximation of what depends on the target only.
    eps : added to rates before their logarithm.
    reduction : "mean", "sum" or "none".
    """

    def __init__(
        self, log_input: bool = True, full: bool = False, *, eps: float = 1e-8, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction=reduction)
        self.log_input, self.full, self.eps = log_input, full, eps

    def forward(self, log_input: Any, target: Any) -> Any:
        """Loss of input and target (...): () or, unreduced, (...)."""
        return F.poisson_nll_loss(log_input, target, self.log_input, self.full, eps=self.eps, reduction=self.reduction)


class GaussianNLLLoss(_Loss):
    """Minus the log-likelihood of normal distributions.

    Parameters
    ----------
    full : add the constant log(2 pi) / 2.
    eps : least variance.
    reduction : "mean", "sum" or "none".
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.full, self.eps = full, eps

    def forward(self, input: Any, target: Any, var: Any) -> Any:
        """Loss of means and targets (...) with variances (...), (..., 1) or a number: () or, unreduced, (...)."""
        return F.gaussian_nll_loss(input, target, var, self.full, self.eps, self.reduction)


class TripletMarginLoss(_Loss):
    """How much less than a margin the positive example is nearer to the anchor than the negative one.

    Parameters
    ----------
    margin : number > 0.
    p, eps : of the distances, see `pairwise_distance`.
    swap : measure the negative example from the positive one where that is nearer.
    reduction : "mean", "sum" or "none".
    """

    def __init__(
        self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction=reduction)
        self.margin, self.p, self.eps, self.swap = margin, p, eps, swap

    def forward(self, anchor: Any, positive: Any, negative: Any) -> Any:
        """Loss of three (..., k): () or, unreduced, (...)."""
        return F.triplet_margin_loss(
            anchor, positive, negative, self.margin, self.p, self.eps, self.swap, reduction=self.reduction
        )


class CosineEmbeddingLoss(_Loss):
    """1 - cosine of pairs that belong together, how far it is above a margin of those that do not.

    Parameters
    ----------
    margin : number, from -1 to 1.
    reduction : "mean", "sum" or "none".
    """

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.margin = margin

    def forward(self, input1: Any, input2: Any, target: Any) -> Any:
        """Loss of vectors input1 and input2 (batch, k) for target (batch,) 1 or -1: () or, unreduced, (batch,)."""
        return F.cosine_embedding_loss(input1, input2, target, self.margin, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """Binary cross-entropy of logits, the mean over the classes.

    Parameters
    ----------
    weight : (classes,) factor of each class, or None.
    reduction : "mean", "sum" or "none".
    """

    def __init__(self, weight: Any = None, reduction: str = "mean") -> None:
        super().__init__(weight, reduction=reduction)

    def forward(self, input: Any, target: Any) -> Any:
        """Loss of input and target (batch, classes): () or, unreduced, (batch,)."""
        return F.multilabel_soft_margin_loss(input, target, self.weight, reduction=self.reduction)


class PairwiseDistance(Module):
    """Distance of corresponding vectors.

    Parameters
    ----------
    p : of the norm.
    eps : added to every difference.
    keepdim : leave the last dimension with size 1.
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Any, x2: Any) -> Any:
        """Distances of x1 and x2 (..., k): (...)."""
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


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
        super().__init__(reduction=reduction)
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
