"""Random orders are those of a stable sort, whichever way it is done."""

import numpy as np
import pytest

import dynamic
import static
from common.random import orders


@pytest.mark.quick
@pytest.mark.parametrize("n", [0, 1, 2, 3, 8, 63, 64, 1000, 4097, orders._MOST, orders._MOST + 1])
def test_uniform_numbers_are_put_in_a_stable_order(n):
    u = np.random.default_rng(n).random(n)
    if n > 5:
        u[2], u[4], u[n - 2] = 0.0, 1 - 2.0**-53, 1 - 2.0**-53
        u[3], u[n - 1] = u[1], u[0]
    for x in (u, np.floor(u * 50) / 50 if n < 5000 else u[::-1].copy()):
        assert orders.order_of(x).numpy().tobytes() == np.argsort(x, kind="stable").astype(np.int64).tobytes()


def test_both_engines_draw_one_order():
    for n in (7, 1000):
        dynamic.manual_seed(n)
        eager = dynamic.randperm(n)
        dynamic.manual_seed(n)
        u = dynamic.rand(n, dtype=dynamic.float64).numpy()
        assert eager.tolist() == np.argsort(u, kind="stable").tolist()
        static.manual_seed(n)
        assert static.function(lambda n=n: static.randperm(n))().tolist() == eager.tolist()
