"""Modules; the same objects in both engines."""

from common.nn import *  # noqa: F403
from common.nn import __all__ as _names
from static.nn import functional

__all__ = list(_names)
