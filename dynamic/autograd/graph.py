"""What programs do with the recorded graph: look at it, draw it, hang hooks into it."""

from typing import TYPE_CHECKING

from common import absent
from common.autograd.graph import *  # noqa: F403  the names are listed there
from common.autograd.graph import __all__ as __all__

if not TYPE_CHECKING:
    __getattr__ = absent.getter(__name__)
