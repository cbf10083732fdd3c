"""Sequences of several lengths; the same functions in both engines."""

from common.api.places import publish
from common.nn.sequences import *  # noqa: F403
from common.nn.sequences import __all__ as __all__

publish(__name__)
