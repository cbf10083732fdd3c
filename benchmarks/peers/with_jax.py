"""JAX's versions of the workloads under jax.jit, results waited for, parameters donated."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.peers import Built
from benchmarks.peers.jax_blocks import (
    Params,
    block_and_gradients,
    character_model,
    classify,
    cross_entropy,
    layer_norm,
    recurrent_model,
    regress,
    residual,
    three_layers,
    unrolled_model,
)
from benchmarks.peers.jax_lessons import autoencoder, decoder, lenet
from benchmarks.peers.jax_science import SCIENCE
from benchmarks.workload import Array, Workload
from benchmarks.workloads import newton

jax.config.update("jax_enable_x64", True)  # for the float64 row and the int64 classes; float32 stays float32


def build(peer: str, workload: Workload, initial: dict[str, Array]) -> Built | None:
    """Return the workload in JAX; `peer` is "jax.jit", or "jax" for the same op by op."""
    made = compiled(workload, initial)
    return made if made is None or peer == "jax.jit" else (op_by_op(made[0]), made[1])


def op_by_op(call: Any) -> Any:
    """Return the call as it runs where nothing is compiled as a whole."""

    def run(*arguments: Any) -> Any:
        with jax.disable_jit():
            return call(*arguments)

    return run


def compiled(workload: Workload, initial: dict[str, Array]) -> Built | None:
    """Return the workload under jax.jit."""
    inputs = [tuple(jnp.asarray(array) for array in arrays) for arrays in workload.inputs()]
    params = {name: jnp.array(value) for name, value in initial.items()}
    if workload.name in PULLBACKS:
        return waiting(jax.jit(pullback(PULLBACKS[workload.name]))), inputs
    if workload.name in TRAININGS:
        loss, start, update = TRAININGS[workload.name]
        return training(loss, start, update, params), inputs
    if workload.name == "b-cross-entropy":
        return waiting(jax.jit(jax.value_and_grad(cross_entropy))), inputs
    if workload.name == "newton":
        return waiting(jax.jit(roots)), inputs
    if workload.name in SCIENCE:
        return waiting(jax.jit(SCIENCE[workload.name])), inputs
    if workload.name == "i-transformer":
        return block_and_gradients(params), inputs
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


def adam(lr: float, decay: float = 0.0) -> tuple[Any, Any]:
    """Return (start, update) of Adam with the usual constants, or of AdamW."""

    def start(params: Params) -> Any:
        return jnp.zeros((), jnp.float32), *(jax.tree.map(jnp.zeros_like, params) for _ in range(2))

    def update(params: Params, gradients: Params, state: Any) -> Any:
        t, m, v = state[0] + 1, state[1], state[2]
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, gradients)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, gradients)
        rate, scale = lr / (1 - 0.9**t), jnp.sqrt(1 - 0.999**t)
        new = jax.tree.map(lambda p, m, v: p * (1 - lr * decay) - rate * m / (jnp.sqrt(v) / scale + 1e-8), params, m, v)
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
    "g-mlp-adam": (three_layers, *adam(0.001)),
    "h-lstm-cell": (unrolled_model, *sgd(0.1)),
    "deep": (residual, *adam(0.001)),
    "charlm": (character_model, *adam(0.003)),
    "lstm": (recurrent_model, *adam(0.003)),
    "lenet": (lenet, *adam(0.002)),
    "gpt": (decoder, *adam(0.003, 0.01)),
    "vae": (autoencoder, *adam(0.003)),
}
