"""Losses as modules: functions of `common.ops.functional` with their arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from common.core.aliases import older_reduction
from common.core.errors import ArgumentError
from common.nn import functions as F
from common.nn.module import Module
from common.nn.module_state import as_buffer

#: PyTorch's order of a loss's arguments, with those that `reduction` has replaced; of others it is `_PLAIN`.
_PLAIN = "size_average reduce reduction"
_PLACES = {
    "CrossEntropyLoss": "weight size_average ignore_index reduce reduction label_smoothing",
    "NLLLoss": "weight size_average ignore_index reduce reduction",
    **dict.fromkeys(("_WeightedLoss", "BCELoss", "MultiLabelSoftMarginLoss"), f"weight {_PLAIN}"),
    "BCEWithLogitsLoss": f"weight {_PLAIN} pos_weight", "SmoothL1Loss": f"{_PLAIN} beta",
    "KLDivLoss": f"{_PLAIN} log_target", "HingeEmbeddingLoss": f"margin {_PLAIN}",
    "MarginRankingLoss": f"margin {_PLAIN}", "CosineEmbeddingLoss": f"margin {_PLAIN}",
    "PoissonNLLLoss": "log_input full size_average eps reduce reduction",
    "TripletMarginLoss": f"margin p eps swap {_PLAIN}", "MultiMarginLoss": f"p margin weight {_PLAIN}",
    **dict.fromkeys(("CTCLoss", "GaussianNLLLoss", "HuberLoss", "LinearCrossEntropyLoss"), ""),
}  # fmt: skip


def _with_older_names(init: Callable[..., None], kind: str = "") -> Callable[..., None]:
    """An ``__init__`` that takes `size_average` and `reduce` for `reduction`, by name or in PyTorch's places."""
    names = _PLACES.get(kind, _PLAIN).split()
    first = names.index("size_average") if names else 0

    @functools.wraps(init)
    def older(self: Any, *args: Any, size_average: Any = None, reduce: Any = None, **kwargs: Any) -> None:
        if names and first < len(args) <= len(names):
            given = dict(zip(names, args, strict=False))
            args, size_average, reduce = (), given.pop("size_average"), given.pop("reduce", reduce)
            kwargs = {**given, **kwargs}
        reduction = kwargs.get("reduction", "mean")
        if size_average is not None or reduce is not None or reduction == "elementwise_mean":
            kwargs["reduction"] = older_reduction(size_average, reduce, reduction)
        init(self, *args, **kwargs)

    return older


class _Loss(Module):
    """A loss; weights are buffers, and so part of the state, as in PyTorch."""

    @_with_older_names
    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in cls.__dict__ and cls.__module__.startswith("common."):  # a user's class takes what it takes
            cls.__init__ = _with_older_names(cls.__init__, cls.__name__)  # type: ignore[method-assign]

    def _hold(self, **weights: Any) -> None:
        """Keep weights by name; None for none."""
        for name, weight in weights.items():
            self.register_buffer(name, weight if weight is None else as_buffer(weight))


class _WeightedLoss(_Loss):
    """A loss with a factor for each class, or each element."""

    def __init__(self, weight: Any = None, *, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self._hold(weight=weight)


class CrossEntropyLoss(_WeightedLoss):
    """Minus the log-probability of the target class, of logits.

    Parameters
    ----------
    weight : (classes,) factor of each class's loss, or None.
    ignore_index : a target that counts as no loss.
    reduction : "mean", "sum" or "none".
    label_smoothing : the part of a target's probability that is spread evenly over all classes.
    """

    def __init__(
        self, weight: Any = None, *, ignore_index: int = -100, reduction: str = "mean", label_smoothing: float = 0.0
    ) -> None:
        super().__init__(weight, reduction=reduction)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing

    def forward(self, input: Any, target: Any) -> Any:
        """Loss of input (batch, classes, ...) for target (batch, ...), int64 or int32, or probabilities like input."""
        return F.cross_entropy(
            input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )  # fmt: skip


class NLLLoss(_WeightedLoss):
    """Minus the log-probability of the target class, of log-probabilities.

    Parameters
    ----------
    weight : (classes,) factor of each class's loss, or None.
    ignore_index : a target that counts as no loss.
    reduction : "mean", "sum" or "none".
    """

    def __init__(self, weight: Any = None, *, ignore_index: int = -100, reduction: str = "mean") -> None:
        super().__init__(weight, reduction=reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Any, target: Any) -> Any:
        """Loss of input (batch, classes, ...) for target (batch, ...), int64 or int32."""
        return F.nll_loss(input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class NLLLoss2d(NLLLoss):
    """`NLLLoss`, under a name of its own for images.

    Parameters
    ----------
    weight, ignore_index, reduction : see `NLLLoss`.
    """


class BCELoss(_WeightedLoss):
    """Binary cross-entropy of probabilities.

    Parameters
    ----------
    weight : factor of each loss, broadcast; or None.
    reduction : "mean", "sum" or "none".
    """

    def forward(self, input: Any, target: Any) -> Any:
        """Loss of input and target (...): () or, unreduced, (...)."""
        return F.binary_cross_entropy(input, target, self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """Binary cross-entropy of logits.

    Parameters
    ----------
    weight : factor of each loss, broadcast; or None.
    reduction : "mean", "sum" or "none".
    pos_weight : factor of the term with the target, broadcast; or None.
    """

    def __init__(self, weight: Any = None, *, reduction: str = "mean", pos_weight: Any = None) -> None:
        super().__init__(reduction=reduction)
        self._hold(weight=weight, pos_weight=pos_weight)

    def forward(self, input: Any, target: Any) -> Any:
        """Loss of input and target (...): () or, unreduced, (...)."""
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, reduction=self.reduction, pos_weight=self.pos_weight
        )


class MSELoss(_Loss):
    """Squared difference.

    Parameters
    ----------
    reduction : "mean", "sum" or "none".
    """

    def forward(self, input: Any, target: Any) -> Any:
        """Loss of input and target (...): () or, unreduced, (...)."""
        return F.mse_loss(input, target, reduction=self.reduction)


class L1Loss(_Loss):
    """Absolute difference.

    Parameters
    ----------
    reduction : "mean", "sum" or "none".
    """

    def forward(self, input: Any, target: Any) -> Any:
        """Loss of input and target (...): () or, unreduced, (...)."""
        return F.l1_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """Absolute difference, a parabola near 0.

    Parameters
    ----------
    beta : where the parabola ends.
    reduction : "mean", "sum" or "none".
    """

    def __init__(self, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        self.beta = beta

    def forward(self, input: Any, target: Any) -> Any:
        """Loss of input and target (...): () or, unreduced, (...)."""
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """Squared difference, a straight line far from 0.

    Parameters
    ----------
    delta : where the parabola ends.
    reduction : "mean", "sum" or "none".
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Any, target: Any) -> Any:
        """Loss of input and target (...): () or, unreduced, (...)."""
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class KLDivLoss(_Loss):
    """Kullback-Leibler divergence from log-probabilities to a target.

    Parameters
    ----------
    log_target : whether the target is given by its logarithms.
    reduction : "mean", "batchmean", "sum" or "none".
    """

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.log_target = log_target

    def forward(self, input: Any, target: Any) -> Any:
        """Loss of input and target (...): () or, unreduced, (...)."""
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class SoftMarginLoss(_Loss):
    """log(1 + e^(-y x)).

    Parameters
    ----------
    reduction : "mean", "sum" or "none".
    """

    def forward(self, input: Any, target: Any) -> Any:
        """Loss of input and target (...): () or, unreduced, (...)."""
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class HingeEmbeddingLoss(_Loss):
    """Distances of pairs that belong together, margins of those that do not.

    Parameters
    ----------
    margin : how far apart pairs should be.
    reduction : "mean", "sum" or "none".
    """

    def __init__(self, margin: float = 1.0, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.margin = margin

    def forward(self, input: Any, target: Any) -> Any:
        """Loss of input and target (...): () or, unreduced, (...)."""
        return F.hinge_embedding_loss(input, target, reduction=self.reduction, margin=self.margin)


class MarginRankingLoss(_Loss):
    """How far pairs are from the right order.

    Parameters
    ----------
    margin : how far apart the ranks should be.
    reduction : "mean", "sum" or "none".
    """

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.margin = margin

    def forward(self, input1: Any, input2: Any, target: Any) -> Any:
        """Loss of ranks input1 and input2 (...) for target 1 or -1: () or, unreduced, (...)."""
        return F.margin_ranking_loss(input1, input2, target, reduction=self.reduction, margin=self.margin)


class CosineSimilarity(Module):
    """Cosine of the angle between vectors.

    Parameters
    ----------
    dim : along which the vectors lie.
    eps : least value of a norm.
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1: Any, x2: Any) -> Any:
        """Similarity of x1 and x2 (...), without the dimension."""
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


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
        return F.multi_margin_loss(input, target, self.p, self.margin, self.weight, reduction=self.reduction)


class MultiLabelMarginLoss(_Loss):
    """Margins between classes of the target and others, see `multilabel_margin_loss`.

    Parameters
    ----------
    reduction : "mean", "sum" or "none".
    """

    def forward(self, input: Any, target: Any) -> Any:
        """Loss of input (batch, classes) for target (batch, classes), classes up to the first negative."""
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)
