"""Counts of Poisson and binomial distributions: sums of probabilities give what SciPy's search gives, at edges too."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import bdtr, pdtr

import dynamic as tw
from common.core.op import REGISTRY
from common.kernels.math import quantiles
from common.kernels.math.counted_draws import LARGEST_MEAN

BEYOND = np.nextafter(LARGEST_MEAN, np.inf)


def drawn(name, *operands):
    return REGISTRY[name](*map(tw.tensor, operands)).numpy()


@pytest.mark.parametrize("rates", ["small", "all", "edges"])
def test_counts_are_scipys(rates):
    rng = np.random.default_rng(5)
    rate = rng.uniform(0, 3 if rates == "small" else 300, 3000)
    rate[:6] = 0, -1, np.nan, LARGEST_MEAN, BEYOND, 1e-300
    u = rng.uniform(0, 1, rate.size)
    if rates == "edges":
        u = np.clip(np.nan_to_num(pdtr(np.floor(rng.uniform(0, 6, rate.size)), rate)), 0, 1 - 2.0**-53)
    u[6:12] = 0, 1e-9, 1 - 1e-9, 1e-7, 1 - 2.0**-53, 0.5
    found = drawn("poisson_quantile", rate, u)
    assert np.array_equal(found, quantiles.poisson_quantile(rate, u))
    whole = (rate > 0) & (u > 1e-5) & (u < 1 - 1e-5)
    if rates != "edges":  # by the definition
        k, r, goal = found[whole], rate[whole], u[whole]
        assert (pdtr(k, r) >= goal).all()
        assert ((k == 0) | (pdtr(np.maximum(k - 1, 0), r) < goal)).all()


@pytest.mark.parametrize("trials", ["few", "many", "edges"])
def test_successes_are_scipys(trials):
    rng = np.random.default_rng(7)
    n = rng.integers(1, 2000 if trials == "many" else 30, 3000).astype(np.float64)
    p = rng.uniform(0, 1, n.size) ** (4 if trials == "many" else 1)
    u = rng.uniform(0, 1, n.size)
    if trials == "edges":
        u = np.clip(bdtr(np.floor(rng.uniform(0, n)), n.astype(np.int64), p), 0, 1 - 2.0**-53)
    n[:8], p[:8] = (0, 1, 4.5, 7, 7, 7, 7, np.nan), (0.3, 0.5, 0.4, 0, 1, -1, 2, 0.5)
    p[8:12] = np.nan, 1e-300, 0.5, np.nextafter(0.5, 1)
    u[12:18] = 0, 1e-9, 1 - 1e-9, 1e-7, 1 - 2.0**-53, 0.5
    found = drawn("binomial_quantile", n, p, u)
    assert np.array_equal(found, quantiles.binomial_quantile(n, p, u), equal_nan=True)
    whole = (n == np.floor(n)) & (p > 0) & (p < 1) & (u > 1e-5) & (u < 1 - 1e-5)
    if trials != "edges":  # by the definition
        k, m, q, goal = found[whole], n[whole].astype(np.int64), p[whole], u[whole]
        assert (bdtr(k, m, q) >= goal).all()
        assert ((k == 0) | (bdtr(np.maximum(k - 1, 0), m, q) < goal)).all()


def _heard(monkeypatch):
    """The sizes of what is left to SciPy from now on."""
    left = []

    def hearing(function):
        def heard(*arrays):
            left.append(arrays[0].size)
            return function(*arrays)

        heard.__name__ = function.__name__
        return heard

    monkeypatch.setattr(quantiles, "QUANTILES", tuple(map(hearing, quantiles.QUANTILES)))
    return left


def test_few_are_left_to_scipy(monkeypatch):
    left, rng = _heard(monkeypatch), np.random.default_rng(6)
    u = rng.uniform(0.01, 0.99, 20000)
    drawn("poisson_quantile", rng.uniform(-1, LARGEST_MEAN, u.size), u)
    drawn("binomial_quantile", rng.integers(1, 256, u.size).astype(np.float64), rng.uniform(0.01, 0.99, u.size), u)
    assert sum(left) < 100


def test_neighbours_are_left_to_scipy_at_once(monkeypatch):
    rng = np.random.default_rng(8)
    rate, u = rng.uniform(1, 9, 9000), rng.uniform(0.1, 0.9, 9000)
    rate[[3, 60, 700, 4000, 8999]] = 1000
    wanted = quantiles.poisson_quantile(rate, u)
    left = _heard(monkeypatch)
    assert np.array_equal(drawn("poisson_quantile", rate, u), wanted)
    assert left == [58, 1, 1, 1]


@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 0, 3), (300, 3), (2, 3, 257)])
def test_shapes(shape):
    rng = np.random.default_rng(9)
    n, p, u = rng.integers(1, 9, shape).astype(np.float64), rng.uniform(0, 1, shape), rng.uniform(0, 1, shape)
    found = drawn("binomial_quantile", n, p, u)
    assert found.shape == shape
    assert np.array_equal(found, quantiles.binomial_quantile(n, p, u))
    turned = REGISTRY["poisson_quantile"](tw.tensor(n).T, tw.tensor(u).T).numpy()
    assert np.array_equal(turned, quantiles.poisson_quantile(n.T, u.T))
    assert tw.poisson(tw.tensor(2.0)).shape == ()


def test_what_python_raises_comes_out(monkeypatch):
    def poisson_quantile(*arrays):
        raise MemoryError("no room")

    monkeypatch.setattr(quantiles, "QUANTILES", (poisson_quantile,))
    for at in (0, 5000):  # within the loop, and after it
        rate = np.where(np.isin(np.arange(6000), [at, 5999]), 1000.0, 1.0)
        with pytest.raises(MemoryError, match="no room"):
            drawn("poisson_quantile", rate, np.full(6000, 0.5))
