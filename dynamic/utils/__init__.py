"""Utilities around differentiation and training: checkpointing, data, TensorBoard."""

from common.api.places import publish
from common.tensor.swapping import swap_tensors
from dynamic.utils import checkpoint

__all__ = ["benchmark", "checkpoint", "data", "model_zoo", "swap_tensors"]

publish(__name__, late=("_pytree", "benchmark", "data", "model_zoo"))
