"""Distances of all pairs of many rows, which the eager engine finds without storing their differences."""

import numpy as np
import pytest
from scipy.spatial.distance import pdist

import dynamic
import static
from tests.bits import assert_same_bits
from tests.helpers.wrapped import wrap


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(100, 30), (300, 2), (20, 1000), (12, 1100)])
def test_bits_are_those_of_differences(shape, dtype):
    x = np.random.default_rng(0).normal(size=shape).astype(dtype)
    x[1] = x[3]
    x[2, -1] = np.inf
    recorded = dynamic.nn.functional.pdist(wrap(x, requires_grad=True))
    compiled = static.function(lambda x: static.nn.functional.pdist(x))(x)
    for given in (wrap(x), wrap(np.ascontiguousarray(x.T)).t()):
        found = dynamic.nn.functional.pdist(given)
        assert_same_bits(found, compiled, "compiled")
        assert_same_bits(found, recorded, "with a gradient")
        with np.errstate(invalid="ignore"):
            np.testing.assert_allclose(found.numpy(), pdist(x.astype(np.float64)), rtol=1e-6)
