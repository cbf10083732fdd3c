"""Derivatives of recorded tensors: `backward`, `grad`, and what switches recording."""

from common import autograd_function as function
from common import autograd_graph as graph
from common import functional_derivatives as functional
from common.autograd import backward, grad
from common.autograd_function import Function
from common.mode import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
from common.observe import detect_anomaly, is_anomaly_enabled, set_detect_anomaly

__all__ = [
    "Function",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "function",
    "functional",
    "grad",
    "graph",
    "is_anomaly_enabled",
    "is_grad_enabled",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
]
