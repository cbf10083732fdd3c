"""Functions of neural networks on traced tensors or arrays."""

from common.api import surface
from static.api.binding import bind

__all__ = list(surface.NN_FUNCTIONS)

_FUNCTIONS = {name: surface.FUNCTIONS[name] for name in surface.NN_FUNCTIONS}
__getattr__, __dir__ = surface.on_demand(globals(), (bind, _FUNCTIONS))
