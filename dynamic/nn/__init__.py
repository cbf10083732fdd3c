"""Modules; the same objects in both engines."""

from common.nn import *  # noqa: F403
from common.nn import __all__ as _names
from dynamic.nn import functional as functional
from dynamic.nn import modules as modules
from dynamic.nn import utils as utils

__all__ = list(_names)
