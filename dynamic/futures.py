"""Values that another thread will set, under the names of `torch.futures`; the same in both engines."""

from common.api.machine.futures import *  # noqa: F403
from common.api.machine.futures import __all__ as __all__
from common.api.places import publish

publish(__name__)
