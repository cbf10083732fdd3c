"""Learning rate schedulers; the same objects in both engines."""

from common.api.places import publish
from common.optim.lr_scheduler import *  # noqa: F403
from common.optim.lr_scheduler import __all__ as __all__

_LRScheduler = LRScheduler  # noqa: F405  its name in older scripts

publish(__name__)
