"""Parameters as functions of others; the same functions in both engines."""

from typing import TYPE_CHECKING

from common.core import absent
from common.nn.parametrize import *  # noqa: F403
from common.nn.parametrize import __all__ as __all__

if not TYPE_CHECKING:
    __getattr__ = absent.getter(__name__)
