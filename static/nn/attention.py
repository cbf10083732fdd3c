"""Implementations of attention, of which there is one."""

from typing import TYPE_CHECKING

from common.core import absent
from common.nn.attention_backends import *  # noqa: F403
from common.nn.attention_backends import __all__ as __all__
from common.tensor import boundary

if not TYPE_CHECKING:
    __getattr__ = absent.getter(__name__)

boundary.close(__name__)
