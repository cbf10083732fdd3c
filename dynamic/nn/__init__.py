"""Modules; the same objects in both engines."""

from typing import TYPE_CHECKING

from common.core import absent
from common.nn import *  # noqa: F403
from common.nn import __all__ as _names
from common.tensor import boundary
from dynamic.nn import attention, functional, init, modules, parallel, parameter, utils

__all__ = list(_names)

if not TYPE_CHECKING:
    __getattr__ = absent.getter(__name__)

boundary.close(__name__)
