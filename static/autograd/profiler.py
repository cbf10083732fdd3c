"""PyTorch's older place of the profiler."""

from typing import TYPE_CHECKING

from common.core import absent
from common.tensor import boundary
from common.tools.profiling.profiler import *  # noqa: F403
from common.tools.profiling.profiler import __all__ as __all__

if not TYPE_CHECKING:
    __getattr__ = absent.getter(__name__)

boundary.close(__name__)
