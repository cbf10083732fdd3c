"""Functions of neural networks on tensors or arrays."""

from typing import TYPE_CHECKING, Any

from common import surface
from dynamic.binding import bind

globals().update(bind({name: surface.FUNCTIONS[name] for name in surface.NN_FUNCTIONS}))

__all__ = list(surface.NN_FUNCTIONS)

if TYPE_CHECKING:  # bound from one list, which type checkers cannot follow

    def __getattr__(name: str) -> Any: ...
