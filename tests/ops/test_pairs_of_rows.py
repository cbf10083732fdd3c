"""Distances of all pairs of many rows, which the eager engine finds without storing their differences."""

from math import inf

import numpy as np
import pytest
from scipy.spatial.distance import pdist

import dynamic
import static
from common.kernels.arrays import distances
from tests.bits import assert_same_bits
from tests.helpers.wrapped import wrap

METRICS = {1: "cityblock", 2: "euclidean", inf: "chebyshev"}


@pytest.fixture
def kernels(monkeypatch):
    """The norms of the kernels that calls ask for."""
    seen, source = [], distances.distances_source
    monkeypatch.setattr(
        distances, "distances_source", lambda dtype, k, *rest: (seen.append(rest), source(dtype, k, *rest))[1]
    )
    return seen


def _rows(shape, dtype):
    x = np.random.default_rng(0).normal(size=shape).astype(dtype)
    x[1] = x[3]
    x[2, -1] = np.inf
    x[5] = -0.0
    return x


@pytest.mark.parametrize("p", METRICS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(100, 30), (300, 2), (40, 200), (33, 64), (20, 1000), (12, 1100)])
def test_bits_are_those_of_differences(shape, dtype, p, kernels):
    x = _rows(shape, dtype)
    recorded = dynamic.nn.functional.pdist(wrap(x, requires_grad=True), p)
    compiled = static.function(lambda x: static.nn.functional.pdist(x, p))(x)
    assert not kernels
    for given in (wrap(x), wrap(np.ascontiguousarray(x.T)).t()):
        found = dynamic.nn.functional.pdist(given, p)
        assert_same_bits(found, compiled, "compiled")
        assert_same_bits(found, recorded, "with a gradient")
        with np.errstate(invalid="ignore"):
            np.testing.assert_allclose(found.numpy(), pdist(x.astype(np.float64), METRICS[p]), rtol=1e-6)
    assert len(kernels) == 2 * distances.serves_pairs(*shape, np.dtype(dtype).itemsize)


@pytest.mark.parametrize("p", [1, inf])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(100, 3), (33, 40), (300, 20), (16, 256)])
def test_rows_of_two_matrices_are_measured_so_too(shape, dtype, p, kernels):
    x, y = _rows(shape, dtype), np.random.default_rng(1).normal(size=(70, shape[1])).astype(dtype)
    y[4, 0] = np.nan
    recorded = dynamic.cdist(wrap(x, requires_grad=True), wrap(y), p)
    compiled = static.function(lambda x, y: static.cdist(x, y, p))(x, y)
    for _ in range(20):  # it is not remembered by its parts
        found = dynamic.cdist(wrap(x), wrap(y), p)
    assert len(kernels) == 20
    assert_same_bits(found, compiled, "compiled")
    assert_same_bits(found, recorded, "with a gradient")
    with np.errstate(invalid="ignore"):
        sizes = np.abs(x.astype(np.float64)[:, None] - y)
    np.testing.assert_allclose(found.numpy(), sizes.sum(-1) if p == 1 else sizes.max(-1), rtol=1e-6)
    batch = dynamic.cdist(wrap(np.stack([x, x])), wrap(np.stack([y, -y])), p)
    assert_same_bits(batch[0], found, "of a batch")
