"""Gradients of convolutions; the same functions in both engines."""

from common.api.places import publish
from common.nn.conv_gradients import *  # noqa: F403
from common.nn.conv_gradients import __all__ as __all__

publish(__name__)
