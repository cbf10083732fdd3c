"""The lessons in JAX: losses of parameters, named as in PyTorch, and a batch."""

from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.peers.jax_blocks import Params, cross_entropy, layer_norm, linear
from benchmarks.workloads import gpt


def lenet(params: Params, x: Any, target: Any) -> Any:
    """Return the loss of LeNet-5."""
    for name in ("0", "3"):
        x = jax.lax.conv(x, params[f"{name}.weight"], (1, 1), "VALID") + params[f"{name}.bias"][:, None, None]
        x = jax.lax.reduce_window(jnp.tanh(x), 0.0, jax.lax.add, (1, 1, 2, 2), (1, 1, 2, 2), "VALID") / 4
    x = x.reshape(x.shape[0], -1)
    for name in ("7", "9"):
        x = jnp.tanh(linear(params, name, x))
    return cross_entropy(linear(params, "11", x), target)


def decoder(params: Params, codes: Any, after: Any) -> Any:
    """Return the loss of the GPT, with JAX's own attention."""
    n, tokens = codes.shape
    x = params["token.weight"][codes] + params["place.weight"][:tokens]

    def norm(name: str, x: Any) -> Any:
        return layer_norm(x, params[f"{name}.weight"], params[f"{name}.bias"])

    for layer in (f"layers.{i}" for i in range(gpt.LAYERS)):
        apart = linear(params, f"{layer}.qkv", norm(f"{layer}.norm_1", x)).reshape(n, tokens, 3, gpt.HEADS, -1)
        heads = jax.nn.dot_product_attention(apart[:, :, 0], apart[:, :, 1], apart[:, :, 2], is_causal=True)
        x = x + linear(params, f"{layer}.projection", heads.reshape(n, tokens, gpt.WIDTH))
        wide = jax.nn.gelu(linear(params, f"{layer}.wide", norm(f"{layer}.norm_2", x)), approximate=False)
        x = x + linear(params, f"{layer}.narrow", wide)
    logits = norm("norm", x) @ params["output.weight"].T
    return cross_entropy(logits.reshape(-1, logits.shape[-1]), after.reshape(-1))


def autoencoder(params: Params, x: Any, noise: Any) -> Any:
    """Return the loss of the variational autoencoder."""

    def two_layers(name: str, x: Any) -> Any:
        return linear(params, f"{name}.2", jax.nn.relu(linear(params, f"{name}.0", x)))

    mean, log_variance = jnp.split(two_layers("encoder", x), 2, 1)
    logits = two_layers("decoder", mean + noise * jnp.exp(0.5 * log_variance))
    pixels = (jnp.logaddexp(0.0, logits) - x * logits).sum()
    return (pixels - 0.5 * (1 + log_variance - mean * mean - jnp.exp(log_variance)).sum()) / x.shape[0]
