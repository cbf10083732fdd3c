"""Random numbers: generators, their state, and draws."""

from typing import TYPE_CHECKING, Any

from common import surface
from common.random import Generator, get_rng_state, manual_seed, set_rng_state
from static.binding import bind_creation

globals().update(bind_creation({name: surface.CREATION[name] for name in ("rand", "randn")}))

__all__ = ["Generator", "get_rng_state", "manual_seed", "rand", "randn", "set_rng_state"]

if TYPE_CHECKING:  # rand and randn are bound from one list, which type checkers cannot follow

    def __getattr__(name: str) -> Any: ...
