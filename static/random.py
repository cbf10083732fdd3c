"""Random numbers: generators, their state, and draws."""

from typing import TYPE_CHECKING

from common.api.surface import CREATION, DRAWS, owned
from common.core import absent
from common.random.forked_stream import fork_rng
from common.random.generator import Generator, get_rng_state, initial_seed, manual_seed, seed, set_rng_state
from common.tensor import boundary
from static.api.binding import bind_creation

normal, rand, randint, randn, randperm = owned(
    bind_creation({name: CREATION[name] for name in DRAWS}), __name__
).values()

__all__ = [
    "Generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "normal", "rand", "randint", "randn",
    "randperm", "seed", "set_rng_state",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__ = absent.getter(__name__)

boundary.close(__name__)
