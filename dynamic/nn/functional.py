"""Functions of neural networks on tensors or arrays."""

import importlib
from types import ModuleType

from common.api import surface
from dynamic.eager.binding import bind

__all__ = list(surface.NN_FUNCTIONS)

_FUNCTIONS = {name: surface.FUNCTIONS[name] for name in surface.NN_FUNCTIONS}


def _gradients(names: object) -> dict[str, ModuleType]:
    """Gradients of convolutions, a module that PyTorch has here too."""
    return {"grad": importlib.import_module("dynamic.nn.grad")}


__getattr__, __dir__ = surface.on_demand(globals(), (bind, _FUNCTIONS), (_gradients, {"grad": None}))
