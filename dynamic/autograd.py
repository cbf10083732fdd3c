"""Derivatives of recorded tensors: `backward`, `grad`, and what switches recording."""

from common import autograd_graph as graph
from common.autograd import backward, grad
from common.mode import enable_grad, is_grad_enabled, no_grad, set_grad_enabled

__all__ = ["backward", "enable_grad", "grad", "graph", "is_grad_enabled", "no_grad", "set_grad_enabled"]
