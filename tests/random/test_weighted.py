"""Indices drawn with replacement by one kernel are those of running sums, and refused weights draw nothing."""

import numpy as np
import pytest

import dynamic
from common.core.errors import ArgumentError
from common.kernels.arrays.philox import uniform_oracle
from common.random import weighted


@pytest.mark.quick
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("shape", "count"), [((1,), 3), ((7,), 100), ((3, 50), 9), ((0, 4), 2), ((9000,), 5)])
def test_indices_are_where_shares_of_the_sum_lie(shape, count, dtype):
    rng = np.random.default_rng(count)
    x = (rng.random(shape) * (rng.random(shape) < 0.6)).astype(dtype)
    x[..., 0] = 0.5
    running = np.cumsum(x.astype(np.float64), -1)
    dynamic.manual_seed(11)
    drawn = dynamic.multinomial(dynamic.tensor(x), count, replacement=True).numpy()
    u = uniform_oracle(11, 0, drawn.size, "float64").reshape(drawn.shape)
    expected = (running[..., None, :] <= (u * running[..., -1:])[..., None]).sum(-1)
    assert drawn.dtype == np.int64
    assert drawn.tolist() == expected.tolist()
    assert dynamic.get_rng_state().tolist() == [11, drawn.size]
    dynamic.manual_seed(11)
    turned = dynamic.tensor(np.ascontiguousarray(x.T)).mT if x.ndim == 2 else dynamic.tensor(np.repeat(x, 2))[::2]
    assert dynamic.multinomial(turned, count, replacement=True).tolist() == expected.tolist()


@pytest.mark.parametrize("wrong", [-1.0, np.nan, np.inf, 0.0])
def test_refused_weights_draw_nothing(wrong):
    x = np.zeros(5, np.float32)
    x[2] = wrong
    before = dynamic.get_rng_state().tolist()
    with pytest.raises(ArgumentError, match="invalid multinomial distribution"):
        dynamic.multinomial(dynamic.tensor(x), 2, replacement=True)
    assert dynamic.get_rng_state().tolist() == before


def test_weights_that_sum_to_infinity_are_drawn_from_by_ops():
    x = np.full(3, 1.5e308)
    assert weighted.chosen_at_once(x, 4, None) is None
    dynamic.manual_seed(2)
    found = dynamic.multinomial(dynamic.tensor(x), 4, replacement=True)
    dynamic.manual_seed(2)
    assert found.tolist() == weighted.chosen(x, 4, True, None).tolist()
