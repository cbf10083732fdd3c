"""Weights and models of local directories; the same functions in both engines."""

from common.api.places import publish
from common.tools.files.hub import FUNCTIONS

__getattr__ = publish(__name__, FUNCTIONS)
