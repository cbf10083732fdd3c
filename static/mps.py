"""Graphics of Apple's machines: there is none; questions are answered, requests are refused."""

from typing import TYPE_CHECKING

from common.api.machine.accelerators import MPS
from common.core import absent
from common.tensor import boundary

globals().update(MPS)
__all__ = list(MPS)

if not TYPE_CHECKING:
    __getattr__ = absent.getter(__name__)

boundary.close(__name__)
