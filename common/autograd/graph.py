"""What programs do with the recorded graph: `autograd.graph` of both engines."""

from common.autograd.hooks import RemovableHandle, register_multi_grad_hook
from common.autograd.observe import saved_tensors_hooks
from common.autograd.tape import Node

__all__ = ["Node", "RemovableHandle", "register_multi_grad_hook", "saved_tensors_hooks"]
