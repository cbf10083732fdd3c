"""Random numbers: generators, their state, and draws."""

from common.random import Generator, get_rng_state, manual_seed, set_rng_state
from common.surface import CREATION
from static.binding import bind_creation

rand, randn = bind_creation({name: CREATION[name] for name in ("rand", "randn")}).values()

__all__ = ["Generator", "get_rng_state", "manual_seed", "rand", "randn", "set_rng_state"]
