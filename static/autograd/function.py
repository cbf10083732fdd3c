"""Functions with gradient rules of their own."""

from common.autograd.function import *  # noqa: F403  the names are listed there
from common.autograd.function import __all__ as __all__
