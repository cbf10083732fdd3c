"""The accelerator: there is none; questions are answered, requests are refused."""

from typing import TYPE_CHECKING

from common.api.machine.accelerators import ACCELERATOR
from common.core import absent
from common.tensor import boundary

globals().update(ACCELERATOR)
__all__ = list(ACCELERATOR)

if not TYPE_CHECKING:
    __getattr__ = absent.getter(__name__)

boundary.close(__name__)
