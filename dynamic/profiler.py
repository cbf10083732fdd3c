"""Where the time of a program goes: a profiler in the shape of `torch.profiler`."""

from common.api.places import publish
from common.tools.profiling.profiler import *  # noqa: F403  one list of names for both engines
from common.tools.profiling.profiler import __all__ as __all__

publish(__name__)
