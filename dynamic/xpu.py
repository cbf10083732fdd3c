"""GPUs of Intel's: there is none; questions are answered, requests are refused."""

from typing import TYPE_CHECKING

from common.api.machine.accelerators import XPU
from common.core import absent
from common.tensor import boundary

globals().update(XPU)
__all__ = list(XPU)

__path__: list[str] = []  # so that imports of modules below are told why there are none

if not TYPE_CHECKING:
    __getattr__ = absent.getter(__name__)

boundary.close(__name__)
