"""Derivatives inside a trace: `backward`, `grad`, and the switches of recording."""

import importlib
from typing import TYPE_CHECKING, Any

from common.api.places import open_places
from common.autograd.backward import backward, grad
from common.autograd.function import Function
from common.autograd.multithreading import is_multithreading_enabled, set_multithreading_enabled
from common.autograd.saved_values import SavedTensor
from common.autograd.variable import Variable
from common.core import absent
from common.core.mode import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
from common.tensor import boundary
from common.tensor.observers import detect_anomaly, is_anomaly_enabled, set_detect_anomaly
from common.transforms.gradcheck import GradcheckError, gradcheck, gradgradcheck
from static.autograd import forward_ad, function, functional, graph

open_places(__name__)

__all__ = [
    "Function", "GradcheckError", "SavedTensor", "Variable", "backward", "detect_anomaly", "enable_grad",
    "forward_ad", "function", "functional", "grad", "gradcheck", "gradgradcheck", "graph", "inference_mode",
    "is_anomaly_enabled", "is_grad_enabled", "is_multithreading_enabled", "no_grad", "profiler", "set_detect_anomaly",
    "set_grad_enabled", "set_multithreading_enabled",
]  # fmt: skip

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name == "profiler":  # loaded when it is first asked for
            return importlib.import_module(f"{__name__}.profiler")
        return absent.refuse(__name__, name)


boundary.close(__name__)
