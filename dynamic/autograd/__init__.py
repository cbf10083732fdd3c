"""Derivatives of recorded tensors: `backward`, `grad`, and the switches of recording."""

from common.api.places import publish
from common.autograd.backward import backward, grad
from common.autograd.function import Function
from common.autograd.multithreading import is_multithreading_enabled, set_multithreading_enabled
from common.autograd.saved_values import SavedTensor
from common.autograd.variable import Variable
from common.core.mode import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
from common.tensor.observers import detect_anomaly, is_anomaly_enabled, set_detect_anomaly
from common.transforms.gradcheck import GradcheckError, gradcheck, gradgradcheck
from dynamic.autograd import forward_ad, function, functional, graph

__all__ = [
    "Function", "GradcheckError", "SavedTensor", "Variable", "backward", "detect_anomaly", "enable_grad",
    "forward_ad", "function", "functional", "grad", "gradcheck", "gradgradcheck", "graph", "inference_mode",
    "is_anomaly_enabled", "is_grad_enabled", "is_multithreading_enabled", "no_grad", "profiler", "set_detect_anomaly",
    "set_grad_enabled", "set_multithreading_enabled",
]  # fmt: skip

publish(__name__, late=("profiler",))
