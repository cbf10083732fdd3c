"""NVIDIA's GPUs: there is none; questions are answered, requests are refused."""

from typing import TYPE_CHECKING

from common.api.machine.accelerators import CUDA
from common.api.places import open_places
from common.core import absent
from common.tensor import boundary
from static.cuda import amp

globals().update(CUDA)
open_places(__name__)
__all__ = list(CUDA)
__all__ += ["amp"]

if not TYPE_CHECKING:
    __getattr__ = absent.getter(__name__)

boundary.close(__name__)
