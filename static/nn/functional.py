"""Functions of neural networks on traced tensors or arrays."""

from typing import TYPE_CHECKING, Any

from common.api import surface
from static.api.binding import bind

__all__ = list(surface.NN_FUNCTIONS)

if TYPE_CHECKING:  # bound from one list, which type checkers cannot follow

    def __getattr__(name: str) -> Any: ...

else:
    _FUNCTIONS = {name: surface.FUNCTIONS[name] for name in surface.NN_FUNCTIONS}
    __getattr__, __dir__ = surface.on_demand(globals(), (bind, _FUNCTIONS))
