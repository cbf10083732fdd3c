"""The CPU, as a device."""

from common.api.machine.accelerators import CPU_SPACE
from common.api.places import publish

__getattr__ = publish(__name__, CPU_SPACE)
