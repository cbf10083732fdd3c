"""The larger models of the workloads in JAX: losses of parameters, named as in PyTorch, and a batch."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.workloads import charlm, deep, lstm, lstm_cell, transformer_block

Params = dict[str, Any]


def cross_entropy(logits: Any, classes: Any) -> Any:
    """Return the mean cross-entropy of logits (n, k) and classes (n,)."""
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), classes[:, None], axis=1))


def layer_norm(x: Any, w: Any, b: Any) -> Any:
    """Return the rows of x normalised, scaled and shifted."""
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred * centred).mean(axis=-1, keepdims=True) + np.float32(1e-5)) * w + b


def linear(params: Params, name: str, x: Any) -> Any:
    """Return x after a layer."""
    return x @ params[f"{name}.weight"].T + params[f"{name}.bias"]


def mlp(params: Params, x: Any) -> Any:
    """Return the output of two layers with a tanh between, named as in a Sequential."""
    return linear(params, "2", jnp.tanh(linear(params, "0", x)))


def classify(params: Params, x: Any, target: Any) -> Any:
    """Return the loss of a classifier."""
    return cross_entropy(mlp(params, x), target)


def regress(params: Params, x: Any, target: Any) -> Any:
    """Return the mean squared error."""
    return jnp.mean((mlp(params, x) - target) ** 2)


def three_layers(params: Params, x: Any, target: Any) -> Any:
    """Return the loss of a classifier of three layers with relu between, named as in a Sequential."""
    x = jax.nn.relu(linear(params, "0", x))
    x = jax.nn.relu(linear(params, "2", x))
    return cross_entropy(linear(params, "4", x), target)


def residual(params: Params, x: Any, target: Any) -> Any:
    """Return the mean squared error of the deep network."""
    for i in range(deep.LAYERS):
        x = x + jnp.tanh(linear(params, f"layers.{i}", x))
    return jnp.mean((x - target) ** 2)


def character_model(params: Params, codes: Any, target: Any) -> Any:
    """Return the loss of the character model."""
    x = params["embedding.weight"][codes].reshape(-1, charlm.CONTEXT * charlm.WIDTH)
    return cross_entropy(linear(params, "output", jnp.tanh(linear(params, "hidden", x))), target)


def recurrent_model(params: Params, codes: Any, target: Any) -> Any:
    """Return the loss of the LSTM."""

    def step(state: Any, x: Any) -> Any:
        h, c = state
        i, f, o, u = jnp.split(linear(params, "cell", jnp.concatenate([x, h], 1)), 4, 1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(u)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    start = jnp.zeros((lstm.BATCH, lstm.HIDDEN), jnp.float32)
    _, states = jax.lax.scan(step, (start, start), params["embedding.weight"][codes])
    return cross_entropy(linear(params, "output", states.reshape(-1, lstm.HIDDEN)), target)


def unrolled_model(params: Params, sequence: Any, target: Any) -> Any:
    """Return the loss of the LSTM cell, unrolled by Python."""
    h = c = jnp.zeros((lstm_cell.BATCH, lstm_cell.HIDDEN), jnp.float32)
    for t in range(lstm_cell.STEPS):
        gates = sequence[t] @ params["cell.weight_ih"].T + params["cell.bias_ih"]
        gates = gates + (h @ params["cell.weight_hh"].T + params["cell.bias_hh"])
        i, f, u, o = jnp.split(gates, 4, 1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(u)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
    return cross_entropy(linear(params, "output", h), target)


def block(params: Params, x: Any) -> Any:
    """Return x (batch, tokens, width) after the transformer block, with JAX's own attention."""
    batch, tokens, width = x.shape
    h = layer_norm(x, params["norm_1.weight"], params["norm_1.bias"])
    apart = linear(params, "qkv", h).reshape(
        batch, tokens, 3, transformer_block.HEADS, width // transformer_block.HEADS
    )
    heads = jax.nn.dot_product_attention(apart[:, :, 0], apart[:, :, 1], apart[:, :, 2], is_causal=True)
    x = x + linear(params, "projection", heads.reshape(batch, tokens, width))
    h = layer_norm(x, params["norm_2.weight"], params["norm_2.bias"])
    return x + linear(params, "narrow", jax.nn.gelu(linear(params, "wide", h), approximate=False))


def block_and_gradients(params: Params) -> Any:
    """Return the call (x, cotangent) -> (y, gradients of x and of the parameters), compiled."""

    def call(params: Params, x: Any, cotangent: Any) -> Any:
        y, back = jax.vjp(block, params, x)
        return (y, *back(cotangent))

    compiled = jax.jit(call)
    return lambda *arguments: jax.block_until_ready(compiled(params, *arguments))
