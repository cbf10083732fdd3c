"""Windows of signals, under the names of `torch.signal.windows`."""

from typing import Any

from common.api import surface
from common.ops.create import signal_windows
from static.api.binding import bind_creation

_FUNCTIONS: dict[str, Any] = signal_windows.FUNCTIONS
__all__ = list(_FUNCTIONS)

__getattr__, __dir__ = surface.on_demand(globals(), (bind_creation, _FUNCTIONS))
