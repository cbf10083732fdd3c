"""Seeds that programs draw themselves."""

import numpy as np

import dynamic
import static
from tests.bits import assert_all_same_bits


def test_ints_of_all_63_bits():
    """As samplers draw their seeds."""
    drawn = []
    for engine in (dynamic, static):

        def seeds(engine=engine):
            return engine.empty(20_000, dtype=engine.int64).random_()

        engine.manual_seed(3)
        drawn += [seeds(), engine.function(seeds)()]
    assert_all_same_bits([drawn[0], drawn[1]], [drawn[2], drawn[3]], "63 bits")
    for x in drawn[:2]:
        ones = ((x.numpy()[:, None] >> np.arange(63)) & 1).mean(0)
        assert x.numpy().min() >= 0
        assert np.abs(ones - 0.5).max() < 0.02
    assert dynamic.empty((), dtype=dynamic.int64).random_().item() >= 0
