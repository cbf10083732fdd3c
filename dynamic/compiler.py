"""Questions about tracing, and marks of PyTorch's compiler that change nothing here."""

from typing import TYPE_CHECKING

from common.api.machine.compiling import *  # noqa: F403
from common.api.machine.compiling import __all__ as __all__
from common.core import absent
from common.tensor import boundary

if not TYPE_CHECKING:
    __getattr__ = absent.getter(__name__)

boundary.close(__name__)
