"""The workloads of science compute what SciPy, numpy and closed forms give."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.stats import multivariate_normal

import dynamic
import static
from benchmarks import bits
from benchmarks.workload import discover, to_array
from benchmarks.workloads import gaussian_process, hamiltonian, neural_ode


def ode_loss(y, w1, b1, w2, b2):
    """The loss by an adaptive solver."""

    def rate(_, flat):
        return (np.tanh(flat.reshape(-1, 2) @ w1 + b1) @ w2 + b2).reshape(-1)

    end = solve_ivp(rate, (0.0, neural_ode.END), y.reshape(-1), method="DOP853", rtol=1e-10, atol=1e-12).y[:, -1]
    return (end * end).sum() / len(y)


def physics_loss(x, w, b, v):
    """The loss with the network's second derivative written down."""
    y = np.tanh(x[:, None] * w + b)
    bend = (-2 * y * (1 - y * y) * w * w) @ v
    ends = (np.tanh(b) @ v) ** 2 + (np.tanh(w + b) @ v) ** 2
    return ((bend + np.pi**2 * np.sin(np.pi * x)) ** 2).mean() + ends


def process_loss(logs, x, y):
    """The density by SciPy."""
    length, height, noise = np.exp(logs)
    kernel = height**2 * np.exp(-0.5 * ((x[:, None] - x[None, :]) / length) ** 2)
    kernel += noise**2 * np.eye(gaussian_process.POINTS)
    return -multivariate_normal(np.zeros(len(x)), kernel).logpdf(y)


def markov_loss(start, moves, shows, seen):
    """The likelihood from probabilities, scaled after each symbol."""
    first, move, show = (np.exp(x) / np.exp(x).sum(-1, keepdims=True) for x in (start, moves, shows))
    at, total = first * show[:, seen[0]], 0.0
    for symbol in seen[1:]:
        total += np.log(at.sum())
        at = (at / at.sum()) @ move * show[:, symbol]
    return -total - np.log(at.sum())


LOSSES = {
    "neural-ode": (ode_loss, range(5)),
    "physics-net": (physics_loss, (1, 2, 3)),
    "gaussian-process": (process_loss, (0,)),
    "hidden-markov": (markov_loss, (0, 1, 2)),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_and_gradients_are_those_of_other_code(name):
    (workload,) = discover([name])
    loss, by = LOSSES[name]
    given = workload.inputs()[0]
    value, *gradients = map(to_array, workload.make(static).call(*given))
    exact = [x.astype(np.float64) if x.dtype.kind == "f" else x for x in given]
    single = given[0].dtype == np.float32
    np.testing.assert_allclose(value, loss(*exact), rtol=1e-5 if single else 1e-12)
    rng = np.random.default_rng(0)
    for place, gradient in zip(by, gradients, strict=True):
        way, h = rng.standard_normal(exact[place].shape), 1e-5
        ends = [loss(*exact[:place], exact[place] + s * h * way, *exact[place + 1 :]) for s in (1, -1)]
        size = np.linalg.norm(gradient) * np.linalg.norm(way)
        error = abs((gradient * way).sum() - (ends[0] - ends[1]) / (2 * h)) / size
        assert error < (1e-5 if single else 1e-7), (place, error)


def test_draws_are_those_of_the_method_in_numpy():
    (workload,) = discover(["hamiltonian"])
    x, y, momenta, chances = workload.inputs()[0]

    def energy(w):
        return (np.logaddexp(0, x @ w) - y * (x @ w)).sum() + 0.5 * w @ w

    def slope(w):
        return x.T @ (1 / (1 + np.exp(-x @ w)) - y) + w

    w, draws, accepted, half = np.zeros(4), [], [], hamiltonian.STEP / 2
    for p, chance in zip(momenta, chances, strict=True):
        new, end = w, p
        for _ in range(hamiltonian.LEAPS):
            end = end - half * slope(new)
            new = new + 2 * half * end
            end = end - half * slope(new)
        accepted.append(np.log(chance) < energy(w) - energy(new) + 0.5 * p @ p - 0.5 * end @ end)
        w = new if accepted[-1] else w
        draws.append(w)
    made = [to_array(x) for x in workload.make(static).call(x, y, momenta, chances)]
    np.testing.assert_allclose(made[0], draws, atol=1e-9)
    assert made[1].tolist() == accepted
    assert 0 < sum(accepted) < len(accepted)


@pytest.mark.parametrize("name", [*LOSSES, "hamiltonian"])
def test_engines_agree_by_bits(name, monkeypatch):
    (workload,) = discover([name])
    monkeypatch.setattr(bits, "STEPS", 2)
    assert list(bits.mismatches(workload, dynamic, static)) == []
