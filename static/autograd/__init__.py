"""Derivatives inside a trace: `backward`, `grad`, and what switches recording."""

from common.autograd.derivatives import backward, grad
from common.autograd.function import Function
from common.autograd.observe import detect_anomaly, is_anomaly_enabled, set_detect_anomaly
from common.mode import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
from static.autograd import function, functional, graph

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
