"""Learning rate schedulers; the same objects in both engines."""

from typing import TYPE_CHECKING

from common.core import absent
from common.optim.lr_scheduler import *  # noqa: F403
from common.optim.lr_scheduler import __all__ as __all__

_LRScheduler = LRScheduler  # noqa: F405  its name in older scripts

if not TYPE_CHECKING:
    __getattr__ = absent.getter(__name__)
