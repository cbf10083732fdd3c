"""GPUs of Intel's: there is none; questions are answered, requests are refused."""

from common.api.machine.accelerators import XPU
from common.api.places import publish

__path__: list[str] = []  # so that imports of modules below are told why there are none

__getattr__ = publish(__name__, XPU)
