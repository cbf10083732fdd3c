"""Reductions under a mask, with the names of `torch.masked`."""

from typing import Any

from common.api import surface
from common.ops.reduce import masked
from static.api.binding import bind

_FUNCTIONS: dict[str, Any] = dict(sorted(masked.FUNCTIONS.items()))
__all__ = list(_FUNCTIONS)

__getattr__, __dir__ = surface.on_demand(globals(), (bind, _FUNCTIONS))
