"""Programs of several processes in PyTorch's way, which are not here: questions are answered."""

from typing import TYPE_CHECKING

from common.api.machine.accelerators import DISTRIBUTED
from common.core import absent
from common.tensor import boundary

globals().update(DISTRIBUTED)
__all__ = list(DISTRIBUTED)

__path__: list[str] = []  # so that imports of modules below are told why there are none

if not TYPE_CHECKING:
    __getattr__ = absent.getter(__name__)

boundary.close(__name__)
