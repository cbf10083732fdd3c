"""Jacobians, Hessians and their products with vectors, with the signatures of `torch.autograd.functional`."""

from common.autograd.functional import *  # noqa: F403  the names are listed there
from common.autograd.functional import __all__ as __all__
