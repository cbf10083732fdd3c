"""Random numbers: generators, their state, and draws."""

from common.api.places import publish
from common.api.surface import CREATION, DRAWS, owned
from common.random.forked_stream import fork_rng
from common.random.generator import Generator, get_rng_state, initial_seed, manual_seed, seed, set_rng_state
from dynamic.eager.binding import bind_creation

normal, rand, randint, randn, randperm = owned(
    bind_creation({name: CREATION[name] for name in DRAWS}), __name__
).values()

__all__ = [
    "Generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "normal", "rand", "randint", "randn",
    "randperm", "seed", "set_rng_state",
]  # fmt: skip

publish(__name__)
