"""Learning rate schedulers; the same objects in both engines."""

from common.optim.lr_scheduler import *  # noqa: F403
from common.optim.lr_scheduler import __all__ as __all__
