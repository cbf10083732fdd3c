"""Timing of statements, with PyTorch's names."""

from common.api.places import publish
from common.tools.timer import *  # noqa: F403
from common.tools.timer import __all__ as __all__

publish(__name__)
