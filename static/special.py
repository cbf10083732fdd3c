"""Special functions under the names of `torch.special`; some are SciPy's, see docs/numerics.md."""

from typing import TYPE_CHECKING, Any

from common.api import surface
from static.api.binding import bind

__all__ = list(surface.SPECIAL)

if TYPE_CHECKING:  # bound from one list, which type checkers cannot follow

    def __getattr__(name: str) -> Any: ...

else:
    __getattr__, __dir__ = surface.on_demand(globals(), (bind, surface.SPECIAL))
