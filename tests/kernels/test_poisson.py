"""Counts of the Poisson distribution: sums of probabilities give what SciPy's search gives, next to its edges too."""

import numpy as np
import pytest
from scipy.special import pdtr

import dynamic
from common.kernels.math import quantiles


@pytest.mark.parametrize("rates", ["small", "all", "edges"])
def test_counts_are_scipys(rates):
    rng = np.random.default_rng(5)
    rate = rng.uniform(0, 3 if rates == "small" else 80, 3000)
    rate[:6] = 0, -1, np.nan, 12, np.nextafter(12, 13), 1e-300
    u = rng.uniform(0, 1, rate.size)
    if rates == "edges":
        u = np.clip(np.nan_to_num(pdtr(np.floor(rng.uniform(0, 6, rate.size)), rate)), 0, 1 - 2.0**-53)
    u[6:12] = 0, 1e-9, 1 - 1e-9, 1e-7, 1 - 2.0**-53, 0.5
    found = quantiles.poisson_quantile(rate, u)
    assert np.array_equal(found, quantiles.searched_poisson_quantile(rate, u))
    whole = (rate > 0) & (u > 1e-5) & (u < 1 - 1e-5)
    if rates != "edges":  # by the definition
        k, r, goal = found[whole], rate[whole], u[whole]
        assert (pdtr(k, r) >= goal).all()
        assert ((k == 0) | (pdtr(np.maximum(k - 1, 0), r) < goal)).all()


def test_few_are_left_to_scipy(monkeypatch):
    left = []
    monkeypatch.setattr(
        quantiles, "searched_poisson_quantile", lambda rate, u: left.append(rate.size) or np.zeros(rate.shape)
    )
    rng = np.random.default_rng(6)
    quantiles.poisson_quantile(rng.uniform(0, 12, 20000), rng.uniform(0.01, 0.99, 20000))
    assert sum(left) < 20


def test_shapes_broadcast_and_single_numbers_stay_single():
    assert quantiles.poisson_quantile(np.float64(3), np.float64(0.5)).shape == ()
    found = quantiles.poisson_quantile(np.ones((2, 1)), np.full(3, 0.5))
    assert found.tolist() == [[1, 1, 1], [1, 1, 1]]
    assert dynamic.poisson(dynamic.tensor(2.0)).shape == ()
