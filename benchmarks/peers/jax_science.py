"""The workloads of science in JAX."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.workloads import gaussian_process, hamiltonian, neural_ode


def adjoint(y: Any, *weights: Any) -> Any:
    """Return the loss of the neural ODE and its gradients, by the adjoint equation."""
    step = neural_ode.END / neural_ode.STEPS

    def field(y: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
        return jnp.tanh(y @ w1 + b1) @ w2 + b2

    def forward(_: Any, state: Any) -> Any:
        return neural_ode.runge_kutta(lambda s: (field(s[0], *weights),), state, step)

    def rate(s: Any) -> Any:
        slope, back = jax.vjp(field, s[0], *weights)
        return (slope, *(-g for g in back(s[1])))

    def backward(_: Any, state: Any) -> Any:
        return neural_ode.runge_kutta(rate, state, -step)

    (y,) = jax.lax.fori_loop(0, neural_ode.STEPS, forward, (y,))
    zeros = tuple(map(jnp.zeros_like, weights))
    cotangent = 2 * y / neural_ode.POINTS
    _, *gradients = jax.lax.fori_loop(0, neural_ode.STEPS, backward, (y, cotangent, *zeros))
    return ((y * y).sum() / neural_ode.POINTS, *gradients)


def physics(x: Any, w: Any, b: Any, v: Any) -> Any:
    """Return the loss of the physics-informed network and its gradients."""

    def u(x: Any, w: Any, b: Any, v: Any) -> Any:
        return (jnp.tanh(w * x + b) * v).sum()

    second = jax.grad(jax.grad(u))

    def loss(w: Any, b: Any, v: Any) -> Any:
        bend = jax.vmap(lambda point: second(point, w, b, v))(x)
        inside = ((bend + math.pi**2 * jnp.sin(math.pi * x)) ** 2).mean()
        return inside + u(0.0, w, b, v) ** 2 + u(1.0, w, b, v) ** 2

    value, gradients = jax.value_and_grad(loss, (0, 1, 2))(w, b, v)
    return (value, *gradients)


def likelihood(logs: Any, x: Any, y: Any) -> Any:
    """Return the loss of the Gaussian process."""
    length, height, noise = jnp.exp(logs)
    apart = (x[:, None] - x[None, :]) / length
    kernel = height**2 * jnp.exp(-0.5 * apart * apart) + noise**2 * jnp.eye(gaussian_process.POINTS)
    factor = jnp.linalg.cholesky(kernel)
    z = jax.scipy.linalg.solve_triangular(factor, y, lower=True)
    halves = 0.5 * gaussian_process.POINTS * math.log(2 * math.pi)
    return 0.5 * (z * z).sum() + jnp.log(jnp.diagonal(factor)).sum() + halves


def markov(start: Any, moves: Any, shows: Any, seen: Any) -> Any:
    """Return the loss of the hidden Markov model and its gradients."""

    def loss(start: Any, moves: Any, shows: Any) -> Any:
        start, moves, shows = (jax.nn.log_softmax(x, -1) for x in (start, moves, shows))

        def step(at: Any, symbol: Any) -> Any:
            return jax.nn.logsumexp(at[:, None] + moves, 0) + shows[:, symbol], None

        return -jax.nn.logsumexp(jax.lax.scan(step, start + shows[:, seen[0]], seen[1:])[0], 0)

    value, gradients = jax.value_and_grad(loss, (0, 1, 2))(start, moves, shows)
    return (value, *gradients)


def draws(x: Any, y: Any, momenta: Any, chances: Any) -> Any:
    """Return the draws by Hamiltonian Monte Carlo, and which were accepted."""

    def energy(w: Any) -> Any:
        scores = x @ w
        return (jnp.logaddexp(scores, 0.0) - y * scores).sum() + 0.5 * (w * w).sum()

    slope = jax.grad(energy)

    def leap(_: Any, state: Any) -> Any:
        w, p = state
        p = p - hamiltonian.STEP / 2 * slope(w)
        w = w + hamiltonian.STEP * p
        return w, p - hamiltonian.STEP / 2 * slope(w)

    def draw(w: Any, noise: Any) -> Any:
        p, chance = noise
        new, end = jax.lax.fori_loop(0, hamiltonian.LEAPS, leap, (w, p))
        taken = jnp.log(chance) < energy(w) - energy(new) + 0.5 * (p @ p) - 0.5 * (end @ end)
        w = jnp.where(taken, new, w)
        return w, (w, taken)

    return jax.lax.scan(draw, jnp.zeros_like(x[0]), (momenta, chances))[1]


SCIENCE: dict[str, Callable[..., Any]] = {
    "neural-ode": adjoint,
    "physics-net": physics,
    "gaussian-process": jax.value_and_grad(likelihood),
    "hidden-markov": markov,
    "hamiltonian": draws,
}
