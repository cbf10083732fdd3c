"""Optimisers; the same objects in both engines."""

from common.api.places import publish
from common.optim import *  # noqa: F403
from common.optim import __all__ as _names
from dynamic.optim import lr_scheduler, optimizer, swa_utils

__all__ = list(_names)

publish(__name__)
