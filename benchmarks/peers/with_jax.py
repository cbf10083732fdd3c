"""JAX's versions of the workloads under jax.jit, results waited for, parameters donated."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.peers import Built
from benchmarks.workload import Array, Workload
from benchmarks.workloads import charlm, deep, lstm, newton

jax.config.update("jax_enable_x64", True)  # for the float64 row and the int64 classes; float32 stays float32
Params = dict[str, Any]


def build(peer: str, workload: Workload, initial: dict[str, Array]) -> Built | None:
    """Return the workload in JAX; `peer` is "jax.jit"."""
    inputs = [tuple(jnp.asarray(array) for array in arrays) for arrays in workload.inputs()]
    if workload.name in PULLBACKS:
        return waiting(jax.jit(pullback(PULLBACKS[workload.name]))), inputs
    if workload.name in TRAININGS:
        loss, start, update = TRAININGS[workload.name]
        return training(loss, start, update, {name: jnp.array(value) for name, value in initial.items()}), inputs
    if workload.name == "b-cross-entropy":
        return waiting(jax.jit(jax.value_and_grad(cross_entropy))), inputs
    if workload.name == "newton":
        return waiting(jax.jit(roots)), inputs
    return None


def waiting(compiled: Any) -> Any:
    """Return a call that ends when the results exist: JAX returns before it has computed."""
    return lambda *arguments: jax.block_until_ready(compiled(*arguments))


def pullback(function: Any) -> Any:
    """Return the call (x, w, b, cotangent) -> (y, gx, gw, gb)."""

    def call(x: Any, w: Any, b: Any, cotangent: Any) -> Any:
        y, back = jax.vjp(function, x, w, b)
        return (y, *back(cotangent))

    return call


def training(loss: Any, start: Any, update: Any, params: Params) -> Any:
    """Return one training step that keeps parameters and optimizer state."""

    def change(params: Params, state: Any, x: Any, target: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(params, x, target)
        # gradients are results of our engines' step too
        return value, gradients, *update(params, gradients, state)

    compiled = jax.jit(change, donate_argnums=(0, 1))
    held = [params, start(params)]

    def step(x: Any, target: Any) -> Any:
        value, _, *held[:] = compiled(*held, x, target)
        return jax.block_until_ready(value)

    return step


def cross_entropy(logits: Any, classes: Any) -> Any:
    """Return the mean cross-entropy of logits (n, k) and classes (n,)."""
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), classes[:, None], axis=1))


def layer_norm(x: Any, w: Any, b: Any) -> Any:
    """Return the rows of x normalised, scaled and shifted."""
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred * centred).mean(axis=-1, keepdims=True) + np.float32(1e-5)) * w + b


def mul_add(x: Any, w: Any, b: Any) -> Any:
    """Return the chain of 100 operations."""
    for _ in range(50):
        x = x * w + b
    return x


def mixed(x: Any, w: Any, b: Any) -> Any:
    """Return the mixed chain."""
    for _ in range(14):
        x = jnp.tanh(x * b + b) @ w
        x = x * np.float32(0.5) + x.sum(axis=0)
    return x


def mlp(params: Params, x: Any) -> Any:
    """Return the output of two layers with a tanh between, named as in a Sequential."""
    hidden = jnp.tanh(x @ params["0.weight"].T + params["0.bias"])
    return hidden @ params["2.weight"].T + params["2.bias"]


def classify(params: Params, x: Any, target: Any) -> Any:
    """Return the loss of a classifier."""
    return cross_entropy(mlp(params, x), target)


def regress(params: Params, x: Any, target: Any) -> Any:
    """Return the mean squared error."""
    return jnp.mean((mlp(params, x) - target) ** 2)


def three_layers(params: Params, x: Any, target: Any) -> Any:
    """Return the loss of a classifier of three layers with relu between, named as in a Sequential."""
    x = jax.nn.relu(x @ params["0.weight"].T + params["0.bias"])
    x = jax.nn.relu(x @ params["2.weight"].T + params["2.bias"])
    return cross_entropy(x @ params["4.weight"].T + params["4.bias"], target)


def residual(params: Params, x: Any, target: Any) -> Any:
    """Return the mean squared error of the deep network."""
    for i in range(deep.LAYERS):
        x = x + jnp.tanh(x @ params[f"layers.{i}.weight"].T + params[f"layers.{i}.bias"])
    return jnp.mean((x - target) ** 2)


def character_model(params: Params, codes: Any, target: Any) -> Any:
    """Return the loss of the character model."""
    x = params["embedding.weight"][codes].reshape(-1, charlm.CONTEXT * charlm.WIDTH)
    hidden = jnp.tanh(x @ params["hidden.weight"].T + params["hidden.bias"])
    return cross_entropy(hidden @ params["output.weight"].T + params["output.bias"], target)


def recurrent_model(params: Params, codes: Any, target: Any) -> Any:
    """Return the loss of the LSTM."""

    def step(state: Any, x: Any) -> Any:
        h, c = state
        gates = jnp.concatenate([x, h], 1) @ params["cell.weight"].T + params["cell.bias"]
        i, f, o, u = jnp.split(gates, 4, 1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(u)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    start = jnp.zeros((lstm.BATCH, lstm.HIDDEN), jnp.float32)
    _, states = jax.lax.scan(step, (start, start), params["embedding.weight"][codes])
    logits = states.reshape(-1, lstm.HIDDEN) @ params["output.weight"].T + params["output.bias"]
    return cross_entropy(logits, target)


def roots(a: Any, b: Any) -> Any:
    """Return the roots without a gradient: JAX has none through a loop whose length depends on data."""

    def better(state: Any) -> Any:
        x, _ = state
        step = (x * x * x + a * x - b) / (3 * x * x + a)
        return x - step, jnp.max(jnp.abs(step / (x + 1)))

    return jax.lax.while_loop(lambda state: state[1] > newton.TOLERANCE, better, (b + 1, b[0] * 0 + 1))[0]


def sgd(lr: float, momentum: float = 0.0) -> tuple[Any, Any]:
    """Return (start, update) of stochastic gradient descent."""

    def start(params: Params) -> Any:
        return jax.tree.map(jnp.zeros_like, params) if momentum else ()

    def update(params: Params, gradients: Params, state: Any) -> Any:
        steps = jax.tree.map(lambda v, g: momentum * v + g, state, gradients) if momentum else gradients
        return jax.tree.map(lambda p, v: p - lr * v, params, steps), steps if momentum else ()

    return start, update


def adam(lr: float) -> tuple[Any, Any]:
    """Return (start, update) of Adam with the usual constants."""

    def start(params: Params) -> Any:
        return jnp.zeros((), jnp.float32), *(jax.tree.map(jnp.zeros_like, params) for _ in range(2))

    def update(params: Params, gradients: Params, state: Any) -> Any:
        t, m, v = state[0] + 1, state[1], state[2]
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, gradients)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, gradients)
        rate, scale = lr / (1 - 0.9**t), jnp.sqrt(1 - 0.999**t)
        new = jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) / scale + 1e-8), params, m, v)
        return new, (t, m, v)

    return start, update


PULLBACKS: dict[str, Callable[..., Any]] = {
    "a-float32": lambda x, w, b: jnp.tanh(x * w + b) * x + jnp.exp(-x * x),
    "a-float64": lambda x, w, b: jnp.tanh(x * w + b) * x + jnp.exp(-x * x),
    "c-layer-norm": layer_norm,
    "chain": mul_add,
    "mixed-chain": mixed,
}
TRAININGS: dict[str, tuple[Any, Any, Any]] = {
    "digits": (classify, *sgd(0.1, 0.9)),
    "f-mlp": (classify, *sgd(0.1)),
    "e-tiny-mlp": (regress, *sgd(0.05)),
    "d-mlp-adam": (three_layers, *adam(0.001)),
    "deep": (residual, *adam(0.001)),
    "charlm": (character_model, *adam(0.003)),
    "lstm": (recurrent_model, *adam(0.003)),
}
