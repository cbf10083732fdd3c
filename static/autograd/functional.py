"""Jacobians, Hessians and their products with vectors, with the signatures of `torch.autograd.functional`."""

from typing import TYPE_CHECKING

from common.core import absent
from common.transforms.jacobians import *  # noqa: F403  the names are listed there
from common.transforms.jacobians import __all__ as __all__

if not TYPE_CHECKING:
    __getattr__ = absent.getter(__name__)
