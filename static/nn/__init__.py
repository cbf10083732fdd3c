"""Modules; the same objects in both engines."""

from typing import TYPE_CHECKING

from common.api.places import publish
from common.nn import CLASSES
from common.nn import __all__ as _names

if TYPE_CHECKING:
    from common.nn import *  # noqa: F403
    from static.nn import attention, functional, init, modules, parallel, parameter, utils

__all__ = list(_names)

_MODULES = "attention functional grad init modules parallel parameter utils"
publish(__name__, late=_MODULES.split(), classes=CLASSES)
