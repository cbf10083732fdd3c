"""Gradients and parameters as a whole; the same functions in both engines."""

from typing import TYPE_CHECKING

from common.api.places import open_places
from common.core import absent
from common.nn.parametrizations import remove_spectral_norm as remove_spectral_norm
from common.nn.parametrizations import remove_weight_norm as remove_weight_norm
from common.nn.parametrizations import spectral_norm as spectral_norm
from common.nn.parametrizations import weight_norm as weight_norm
from common.nn.utils import *  # noqa: F403
from common.nn.utils import __all__ as _names
from dynamic.nn.utils import parametrizations, parametrize, prune, rnn

open_places(__name__)

__all__ = list(_names)

if not TYPE_CHECKING:
    __getattr__ = absent.getter(__name__)
