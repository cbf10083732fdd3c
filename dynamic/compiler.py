"""Questions about tracing, and marks of PyTorch's compiler that change nothing here."""

from common.api.machine.compiling import *  # noqa: F403
from common.api.machine.compiling import __all__ as __all__
from common.api.places import publish

publish(__name__)
