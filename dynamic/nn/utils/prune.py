"""Parameters with elements set to 0; the same functions in both engines."""

from typing import TYPE_CHECKING

from common.core import absent
from common.nn.prune import *  # noqa: F403
from common.nn.prune import __all__ as __all__

if not TYPE_CHECKING:
    __getattr__ = absent.getter(__name__)
