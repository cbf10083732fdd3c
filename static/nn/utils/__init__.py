"""Gradients and parameters as a whole; the same functions in both engines."""

from typing import TYPE_CHECKING

from common.core import absent
from common.nn.utils import *  # noqa: F403
from common.nn.utils import __all__ as _names
from static.nn.utils import rnn

__all__ = list(_names)

if not TYPE_CHECKING:
    __getattr__ = absent.getter(__name__)
