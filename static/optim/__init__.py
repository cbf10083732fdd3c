"""Optimisers; the same objects in both engines."""

from common.optim import *  # noqa: F403
from common.optim import __all__ as _names
from static.optim import lr_scheduler as lr_scheduler

__all__ = list(_names)
