"""PyTorch's older place of the profiler."""

from common.api.places import publish
from common.tools.profiling.profiler import *  # noqa: F403
from common.tools.profiling.profiler import __all__ as __all__

publish(__name__)
