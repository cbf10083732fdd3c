"""L-BFGS against SciPy's minimum."""

import numpy as np
import pytest
from scipy.optimize import minimize

import dynamic as tw
import static
from common.core.errors import TraceError


@pytest.mark.parametrize("engine", [tw, static])
@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs_finds_the_minimum_that_scipy_finds(engine, search):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((12, 5)), rng.standard_normal(12)

    def value(x):
        return np.log(np.cosh(a @ x - b)).sum() + 0.05 * (x * x).sum()

    found = minimize(value, np.zeros(5), method="BFGS", options={"gtol": 1e-9})
    x, y = engine.nn.Parameter(np.zeros(2)), engine.nn.Parameter(np.zeros((3, 1)))
    optimizer = engine.optim.LBFGS([x, y], lr=0.5 if search is None else 1, max_iter=12, line_search_fn=search)

    def closure():
        optimizer.zero_grad()
        whole = engine.cat([x, y.reshape(-1)])
        loss = (engine.tensor(a) @ whole - engine.tensor(b)).cosh().log().sum() + 0.05 * (whole * whole).sum()
        loss.backward()
        return loss

    losses = [float(optimizer.step(closure)) for _ in range(8)]
    assert losses[0] == pytest.approx(value(np.zeros(5)))
    assert losses[-1] == pytest.approx(found.fun, rel=1e-9)
    assert np.allclose(np.concatenate([x.numpy(), y.numpy().ravel()]), found.x, atol=1e-4)
    other = engine.optim.LBFGS([x, y], max_iter=12, line_search_fn=search)
    other.load_state_dict(optimizer.state_dict())
    assert other.state[x]["n_iter"] == optimizer.state[x]["n_iter"] > 8


def test_lbfgs_is_refused_in_a_trace():
    p = static.nn.Parameter([1.0])
    optimizer = static.optim.LBFGS([p])
    with pytest.raises(TraceError, match="compile the closure, and call"):
        static.function(lambda: optimizer.step(lambda: (p * p).sum()))()


def test_lbfgs_takes_a_gradient_of_zero():
    p = tw.nn.Parameter([1.0])
    optimizer = tw.optim.LBFGS([p], lr=0.5, tolerance_grad=-1.0)  # which would otherwise end it

    def closure():
        optimizer.zero_grad()
        loss = (p * 0).sum()
        loss.backward()
        return loss

    assert (optimizer.step(closure).item(), p.tolist()) == (0, [1])
