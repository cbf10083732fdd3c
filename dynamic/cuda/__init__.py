"""NVIDIA's GPUs: there is none; questions are answered, requests are refused."""

from common.api.machine.accelerators import CUDA
from common.api.places import publish
from dynamic.cuda import amp

__getattr__ = publish(__name__, {**CUDA, "amp": amp})
