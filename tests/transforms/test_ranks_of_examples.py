"""Ops whose operands may have other ranks than each other, mapped; the oracle is numpy, example by example."""

import numpy as np
import pytest

import dynamic
import static
from tests.bits import assert_same_bits


@pytest.mark.parametrize("tw", [dynamic, static], ids=lambda tw: tw.__name__)
@pytest.mark.parametrize("of_v", [0, None], ids=["values mapped", "values shared"])
@pytest.mark.parametrize("of_x", [0, None], ids=["boundaries mapped", "boundaries shared"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 9)], ids=str)
def test_boundaries_of_an_example_serve_values_of_any_shape(tw, shape, of_x, of_v):
    if of_x is of_v is None:
        return
    rng = np.random.default_rng(0)
    x, v = np.sort(rng.standard_normal((4, 7)), -1), rng.standard_normal((4, *shape))
    given = (x if of_x == 0 else x[0], v if of_v == 0 else v[0])
    found = tw.function(lambda x, v: tw.vmap(tw.searchsorted, in_dims=(of_x, of_v))(x, v))(*given)
    one = [np.searchsorted(x[i if of_x == 0 else 0], v[i if of_v == 0 else 0]) for i in range(4)]
    assert_same_bits(np.asarray(found), np.stack(one), "searchsorted")
