"""Optimisers; the same objects in both engines."""

from typing import TYPE_CHECKING

from common.api.places import publish
from common.optim import CLASSES
from common.optim import __all__ as _names

if TYPE_CHECKING:
    from common.optim import *  # noqa: F403
    from dynamic.optim import lr_scheduler, optimizer, swa_utils

__all__ = list(_names)

publish(__name__, late=("lr_scheduler", "optimizer", "swa_utils"), classes=CLASSES)
