"""Orders of samples."""

from common.data.samplers import *  # noqa: F403
from common.data.samplers import __all__ as __all__
