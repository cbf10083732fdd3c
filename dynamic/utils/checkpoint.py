"""Gradient checkpointing; the same functions in both engines."""

from common.api.places import publish
from common.transforms.checkpoint import *  # noqa: F403
from common.transforms.checkpoint import __all__ as _checkpointing
from common.transforms.recomputing import *  # noqa: F403
from common.transforms.recomputing import __all__ as _recomputing

__all__ = list(_checkpointing + _recomputing)

publish(__name__)
