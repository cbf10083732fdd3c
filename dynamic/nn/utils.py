"""Gradients and parameters as a whole; the same functions in both engines."""

from common.nn import stateless as stateless
from common.nn.utils import *  # noqa: F403
from common.nn.utils import __all__ as __all__
