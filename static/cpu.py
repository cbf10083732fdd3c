"""The CPU, as a device."""

from typing import TYPE_CHECKING

from common.api.machine.accelerators import CPU_SPACE
from common.core import absent
from common.tensor import boundary

globals().update(CPU_SPACE)
__all__ = list(CPU_SPACE)

if not TYPE_CHECKING:
    __getattr__ = absent.getter(__name__)

boundary.close(__name__)
