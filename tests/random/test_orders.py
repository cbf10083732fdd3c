"""Random orders are those of a stable sort of uniform numbers, whichever way it is done."""

import numpy as np
import pytest

import dynamic
import static
from common.evaluate.kernels import compiled
from common.kernels.arrays.philox import uniform_oracle
from common.kernels.arrays.random_orders import random_keys_source, random_order_scratch, random_order_source
from common.random import orders


@pytest.mark.quick
@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 8, 63, 64, 65, 66, 1000, 1025, 4097, orders._MOST, orders._MOST + 1])
def test_orders_are_those_of_a_stable_sort(n):
    for seed, offset in ((0, 0), (n, 2**32 - 3), (-1, 2**63 - 2)):
        dynamic.default_generator.set_state(np.array([seed, offset]))
        order = np.argsort(uniform_oracle(seed, offset, n, "float64"), kind="stable")
        assert dynamic.randperm(n).numpy().tobytes() == order.astype(np.int64).tobytes()
        assert dynamic.get_rng_state().tolist() == [seed, (offset + n + 2**63) % 2**64 - 2**63]


@pytest.mark.parametrize("places", [11, 40, 60])
def test_numbers_that_are_cut_to_equal_ones_are_compared_whole(places):
    """Few bits of each are left beside its place, so most have an equal one."""
    n, digits = 2000, min(8, 63 - places)
    order, held = np.empty(n, np.int64), np.empty(random_order_scratch(n, digits), np.uint8)
    state = np.array(5), np.array(7)
    compiled(random_keys_source(), "random_keys")(*state, held, n, digits, places)
    compiled(random_order_source(), "random_order")(*state, order, held, n, digits, places)
    assert order.tolist() == np.argsort(uniform_oracle(5, 7, n, "float64"), kind="stable").tolist()


def test_both_engines_draw_one_order():
    for n in (7, 1000):
        dynamic.manual_seed(n)
        eager = dynamic.randperm(n)
        dynamic.manual_seed(n)
        u = dynamic.rand(n, dtype=dynamic.float64).numpy()
        assert eager.tolist() == np.argsort(u, kind="stable").tolist()
        static.manual_seed(n)
        assert static.function(lambda n=n: static.randperm(n))().tolist() == eager.tolist()
