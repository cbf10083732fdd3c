"""Windows of signals, under the names of `torch.signal.windows`."""

from typing import TYPE_CHECKING, Any

from common.api import surface
from common.ops.create import signal_windows
from dynamic.eager.binding import bind_creation

_FUNCTIONS: dict[str, Any] = signal_windows.FUNCTIONS
__all__ = list(_FUNCTIONS)

if TYPE_CHECKING:  # bound from one list, which type checkers cannot follow

    def __getattr__(name: str) -> Any: ...

else:
    __getattr__, __dir__ = surface.on_demand(globals(), (bind_creation, _FUNCTIONS))
