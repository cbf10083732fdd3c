"""The accelerator: there is none; questions are answered, requests are refused."""

from common.api.machine.accelerators import ACCELERATOR
from common.api.places import publish

__getattr__ = publish(__name__, ACCELERATOR)
