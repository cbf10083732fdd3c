"""Implementations of attention, of which there is one."""

from common.api.places import publish
from common.nn.attention_backends import *  # noqa: F403
from common.nn.attention_backends import __all__ as __all__

publish(__name__)
