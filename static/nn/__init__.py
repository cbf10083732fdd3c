"""Modules; the same objects in both engines."""

from common.api.places import publish
from common.nn import *  # noqa: F403
from common.nn import __all__ as _names
from static.nn import attention, functional, init, modules, parallel, parameter, utils

__all__ = list(_names)

publish(__name__, late=("grad",))
