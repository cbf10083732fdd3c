"""Normalised weights as parametrizations; the same functions in both engines."""

from common.api.places import publish
from common.nn.parametrizations import *  # noqa: F403
from common.nn.parametrizations import __all__ as __all__

publish(__name__)
