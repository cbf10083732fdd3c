"""Jacobians, Hessians and their products with vectors, with the signatures of `torch.autograd.functional`."""

from common.api.places import publish
from common.transforms.jacobians import *  # noqa: F403  the names are listed there
from common.transforms.jacobians import __all__ as __all__

publish(__name__)
