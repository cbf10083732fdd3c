"""Normalised weights as parametrizations; the same functions in both engines."""

from typing import TYPE_CHECKING

from common.core import absent
from common.nn.parametrizations import *  # noqa: F403
from common.nn.parametrizations import __all__ as __all__

if not TYPE_CHECKING:
    __getattr__ = absent.getter(__name__)
