"""`autograd.graph` of both engines: programs inspect the recorded graph."""

from common.autograd.hooks import register_multi_grad_hook
from common.autograd.recorded_graph import GradientEdge, execution_order, get_gradient_edge, iter_graph, to_networkx
from common.autograd.saved_report import saved_report
from common.autograd.versions import increment_version
from common.tensor.hook_handles import RemovableHandle
from common.tensor.node import Node
from common.tensor.observers import (
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    save_on_cpu,
    saved_tensors_hooks,
)
from common.tools.pictures.recorded_picture import make_dot, module_scopes

__all__ = [
    "GradientEdge", "Node", "RemovableHandle", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks",
    "execution_order", "get_gradient_edge", "increment_version", "iter_graph", "make_dot", "module_scopes",
    "register_multi_grad_hook", "save_on_cpu", "saved_report", "saved_tensors_hooks", "to_networkx",
]  # fmt: skip
