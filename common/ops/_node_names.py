"""Functions that are several ops here and one node in PyTorch: the last of their nodes has that one's name."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from common.core.dispatch import called

#: Public function -> PyTorch's name of its node.
NODES = {
    "addmv": "AddmvBackward0", "addr": "AddrBackward0", "aminmax": "AminmaxBackward0",
    "baddbmm": "BaddbmmBackward0", "batch_norm": "NativeBatchNormBackward0",
    "binary_cross_entropy": "BinaryCrossEntropyBackward0",
    "binary_cross_entropy_with_logits": "BinaryCrossEntropyWithLogitsBackward0", "cdist": "CdistBackward0",
    "cross": "LinalgCrossBackward0", "ldexp": "LdexpBackward0", "nanquantile": "SqueezeBackward4",
    "scatter_reduce": "ScatterReduceBackward0", "pairwise_distance": "NormBackward1",
    "deg2rad": "Deg2RadBackward0", "embedding": "EmbeddingBackward0", "glu": "GluBackward0",
    "group_norm": "NativeGroupNormBackward0", "index_reduce": "IndexReduceBackward0",
    "kron": "UnsafeViewBackward0", "layer_norm": "NativeLayerNormBackward0", "logit": "LogitBackward0",
    "masked_scatter": "MaskedScatterBackward0", "masked_select": "MaskedSelectBackward0", "msort": "SortBackward0",
    "prelu": "PreluKernelBackward0", "quantile": "SqueezeBackward4", "rad2deg": "Rad2DegBackward0",
    "roll": "RollBackward0", "rot90": "Rot90Backward0", "scatter_add": "ScatterAddBackward0", "selu": "EluBackward0",
    "sinc": "SincBackward0", "slice_scatter": "SliceScatterBackward0", "soft_margin_loss": "SoftMarginLossBackward0",
    "take": "TakeBackward0", "threshold": "ThresholdBackward0", "trace": "TraceBackward0", "vdot": "VdotBackward0",
}  # fmt: skip


def shown(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A public function whose result has the node that PyTorch shows."""
    node_name = NODES.get(name)
    if node_name is None:
        return function

    @wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        y = function(*args, **kwargs)
        for part in y if isinstance(y, tuple) else (y,):
            called(part, node_name, *args)
        return y

    return wrapper
