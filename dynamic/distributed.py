"""Programs of several processes in PyTorch's way, which are not here: questions are answered."""

from common.api.machine.accelerators import DISTRIBUTED
from common.api.places import publish

__path__: list[str] = []  # so that imports of modules below are told why there are none

__getattr__ = publish(__name__, DISTRIBUTED)
