"""Optimisers; the same objects in both engines."""

from common.optim import *  # noqa: F403
from common.optim import __all__ as __all__
