"""Transforms of functions with the signatures of `torch.func`."""

from common.api.places import publish
from dynamic.eager.transforms import FUNC

__getattr__ = publish(__name__, FUNC)
