"""The recorded graph: look at it, draw it, hang hooks into it."""

from typing import TYPE_CHECKING

from common.api.autograd_graph import *  # noqa: F403  the names are listed there
from common.api.autograd_graph import __all__ as __all__
from common.core import absent

if not TYPE_CHECKING:
    __getattr__ = absent.getter(__name__)
