"""Functions of neural networks on traced tensors or arrays."""

import importlib
from types import ModuleType

from common.api import surface
from static.api.binding import bind

__all__ = list(surface.NN_FUNCTIONS)

_FUNCTIONS = surface.FUNCTIONS.only(surface.NN_FUNCTIONS)


def _modules(names: dict[str, str]) -> dict[str, ModuleType]:
    """Modules that PyTorch has here too: gradients of convolutions, numbers of reductions."""
    return {name: importlib.import_module(f"static.nn.{own}") for name, own in names.items()}


__getattr__, __dir__ = surface.on_demand(
    globals(), (bind, _FUNCTIONS), (_modules, {"grad": "grad", "_Reduction": "_reduction"})
)
