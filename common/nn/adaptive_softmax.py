"""A softmax over many classes of which few are frequent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from common.core.errors import ArgumentError, ShapeError
from common.core.int_arguments import members
from common.nn import functions as F
from common.nn.containers import ModuleList, Sequential
from common.nn.layers import Linear
from common.nn.module import Module


class ASMoutput(NamedTuple):
    """The result of `AdaptiveLogSoftmaxWithLoss`.

    Attributes
    ----------
    output : (batch,) log-probabilities of the targets.
    loss : () minus their mean.
    """

    output: Any
    loss: Any


class AdaptiveLogSoftmaxWithLoss(Module):
    """The log-softmax of classes in clusters: a head for the frequent ones, and smaller products for the others.

    The classes have to be sorted by frequency, the most frequent first. Each cluster is computed for the whole batch,
    so that no size depends on the targets.

    Parameters
    ----------
    in_features : number of inputs.
    n_classes : number of classes.
    cutoffs : the first class of each cluster, rising.
    div_value : by how much the inner size of a cluster is smaller than that of the one before.
    head_bias : whether the head has a bias.
    device, dtype : as for `Linear`.

    Raises
    ------
    ArgumentError : cutoffs that do not rise, or lie outside the classes.

    References
    ----------
    Grave, Joulin, Cissé, Grangier, Jégou, Efficient softmax approximation for GPUs, 2017.

    Examples
    --------
    >>> import dynamic as tw
    >>> m = tw.nn.AdaptiveLogSoftmaxWithLoss(4, 10, cutoffs=[2, 5])
    >>> out = m(tw.randn(3, 4), tw.tensor([0, 4, 9]))
    >>> out.output.shape, out.loss.shape
    (torch.Size([3]), torch.Size([]))
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        cutoffs = members(cutoffs, "AdaptiveLogSoftmaxWithLoss", "cutoffs")
        if not cutoffs:
            raise ArgumentError("cutoffs should be a sequence of length larger than 0")
        rising = all(a < b for a, b in zip([0, *cutoffs], [*cutoffs, n_classes], strict=True))
        if not all(type(c) is int for c in cutoffs) or not rising:
            raise ArgumentError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each "
                f"value is between 1 and n_classes-1, but got {cutoffs}"
            )
        self.in_features, self.n_classes = in_features, n_classes
        self.cutoffs, self.div_value, self.head_bias = [*cutoffs, n_classes], div_value, head_bias
        self.shortlist_size, self.n_clusters = cutoffs[0], len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        made = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **made)
        self.tail = ModuleList()
        for i, (first, end) in enumerate(zip(self.cutoffs[:-1], self.cutoffs[1:], strict=True)):
            inner = int(in_features // div_value ** (i + 1))
            self.tail.append(
                Sequential(
                    Linear(in_features, inner, bias=False, **made), Linear(inner, end - first, bias=False, **made)
                )
            )

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        for module in self.modules():
            if isinstance(module, Linear):
                module.reset_parameters()

    def forward(self, input: Any, target: Any) -> ASMoutput:
        """Log-probabilities of the targets, and their loss.

        Parameters
        ----------
        input : (batch, in_features), or (in_features,).
        target : (batch,), or (), int64.

        Raises
        ------
        ShapeError : they do not fit together.
        """
        if input.ndim not in (1, 2) or target.ndim != input.ndim - 1 or input.shape[:-1] != target.shape:
            raise ShapeError(
                "Input and target should have the same size in the batch dimension: got "
                f"{tuple(input.shape)} and {tuple(target.shape)}"
            )
        output = F.take_along_dim(self.log_prob(input), F.unsqueeze(target, -1), -1)[..., 0]
        return ASMoutput(output, -F.mean(output))

    def log_prob(self, input: Any) -> Any:
        """Log-probabilities of all classes, (batch, n_classes), for inputs (batch, in_features)."""
        head = F.log_softmax(self.head(input), -1)
        parts = [head[..., : self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            of_cluster = head[..., self.shortlist_size + i : self.shortlist_size + i + 1]
            parts.append(F.log_softmax(cluster(input), -1) + of_cluster)
        return F.cat(parts, -1)

    def predict(self, input: Any) -> Any:
        """The class of the largest probability, (batch,), for inputs (batch, in_features)."""
        return F.argmax(self.log_prob(input), -1)
