"""The elementary functions of numpy, PyTorch and JAX, as calls to time; JAX's under jax.jit, and waited for."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.workload import Array

Call = Callable[[], Any]


def libraries() -> list[str]:
    """Return the libraries that are installed, without importing them."""
    return [name for name in LIBRARIES if find_spec(name) is not None]


def call(library: str, name: str, arguments: tuple[Array, ...]) -> Call | None:
    """Return one evaluation of a function on arrays that are converted once; None where there is no such function.

    Parameters
    ----------
    library : str
        "numpy", "torch" or "jax".
    name : str
        A name in `benchmarks.elementary_reference.FUNCTIONS`.
    arguments : arrays
        (n,) each; numpy and PyTorch write the result to memory made once, JAX makes its own.
    """
    return LIBRARIES[library](name, arguments)


def _numpy(name: str, arguments: tuple[Array, ...]) -> Call | None:
    out = np.empty_like(arguments[0])

    def rsqrt(x: Array, out: Array) -> Array:
        return np.reciprocal(np.sqrt(x, out=out), out=out)

    def sigmoid(x: Array, out: Array) -> Array:
        e = np.exp(np.negative(x, out=out), out=out)
        return np.reciprocal(np.add(e, 1, out=out), out=out)

    composed: dict[str, Any] = {"rsqrt": rsqrt, "sigmoid": sigmoid, "pow": np.power}
    function = composed.get(name) or getattr(np, name, None)
    return None if function is None else lambda: function(*arguments, out=out)


def _torch(name: str, arguments: tuple[Array, ...]) -> Call | None:
    import torch

    torch.set_num_threads(1)
    tensors = [torch.from_numpy(x) for x in arguments]
    out = torch.empty_like(tensors[0])
    function = getattr(torch, name)
    return lambda: function(*tensors, out=out)


def _jax(name: str, arguments: tuple[Array, ...]) -> Call | None:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    elsewhere = {"erf": jax.lax.erf, "rsqrt": jax.lax.rsqrt, "sigmoid": jax.nn.sigmoid}
    function = jax.jit(elsewhere.get(name) or getattr(jnp, name))
    own = [jnp.asarray(x) for x in arguments]
    return lambda: jax.block_until_ready(function(*own))


LIBRARIES: dict[str, Callable[[str, tuple[Array, ...]], Call | None]] = {
    "numpy": _numpy,
    "torch": _torch,
    "jax": _jax,
}
