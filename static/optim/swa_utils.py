"""Averages of parameters over training; the same functions in both engines."""

from common.api.places import publish
from common.tools.averages import *  # noqa: F403
from common.tools.averages import __all__ as __all__

publish(__name__)
