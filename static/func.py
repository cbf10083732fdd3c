"""Transforms of functions with the signatures of `torch.func`."""

from common.api.places import publish
from static.api.transforms import FUNC

__getattr__ = publish(__name__, FUNC)
