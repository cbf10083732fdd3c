"""Reductions and scans of both engines, numpy, PyTorch and JAX, as functions of an array and a dimension.

JAX's are under jax.jit, and waited for. All make their results. A dimension of None is the flat array.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

import dynamic
import static

Run = Callable[[], Any]

_PLAIN = ("sum", "mean", "prod", "amax", "amin", "var", "std", "nansum", "nanmean", "any", "all", "count_nonzero")
_FLAT_FIRST = ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp", "logsumexp")
_POSITIONS = ("argmax", "argmin")
_NORMS = {"norm 1": 1, "norm 2": 2, "norm 3": 3, "norm inf": float("inf")}

NAMES = (*_PLAIN, *_NORMS, *_POSITIONS, *_FLAT_FIRST)
LIBRARIES = ("dynamic", "static", "numpy", "torch", "jax")


def installed() -> list[str]:
    """Return the names of the libraries that can be imported."""
    return [name for name in LIBRARIES if find_spec(name) is not None]


def call(library: str, name: str, x: np.ndarray, dim: int | None) -> Run | None:
    """Return a call of a reduction; None where the library has no such function.

    Parameters
    ----------
    x : (...) float32 or float64; converted once. `any`, `all` and `count_nonzero` get its signs as bools.
    dim : the dimension, None for all elements.
    """
    if name in ("any", "all", "count_nonzero"):
        x = np.zeros(x.shape, np.bool_) if name == "any" else np.ones(x.shape, np.bool_)
    if name in ("prod", "cumprod"):
        x = np.exp(x / 1000).astype(x.dtype)
    return {"dynamic": _ours, "static": _compiled, "numpy": _numpy, "torch": _torch, "jax": _jax}[library](name, x, dim)


def _function(module: Any, name: str, dim: int | None) -> Callable[[Any], Any]:
    if name in _NORMS:
        return lambda x: module.norm(x, _NORMS[name], dim)
    f = getattr(module, name)
    if name in _FLAT_FIRST:
        return lambda x: f(x, 0 if dim is None else dim)
    return lambda x: f(x, dim)


def _ours(name: str, x: np.ndarray, dim: int | None) -> Run:
    operand, f = dynamic.tensor(x if dim is not None else x.ravel()), _function(dynamic, name, dim)
    return lambda: f(operand)


def _compiled(name: str, x: np.ndarray, dim: int | None) -> Run:
    operand, f = x if dim is not None else x.ravel(), static.function(_function(static, name, dim))
    return lambda: f(operand)


def _numpy(name: str, x: np.ndarray, dim: int | None) -> Run | None:
    x = x if dim is not None else x.ravel()
    axis = 0 if dim is None else dim
    if name in _NORMS:
        return lambda: np.linalg.norm(x, _NORMS[name], axis)
    table: dict[str, Callable[[], Any]] = {
        "var": lambda: np.var(x, axis, ddof=1), "std": lambda: np.std(x, axis, ddof=1),
        "cummax": lambda: np.maximum.accumulate(x, axis), "cummin": lambda: np.minimum.accumulate(x, axis),
        "logcumsumexp": lambda: np.logaddexp.accumulate(x, axis),
        "logsumexp": lambda: np.log(np.sum(np.exp(x - np.max(x, axis, keepdims=True)), axis)) + np.max(x, axis),
    }  # fmt: skip
    f = getattr(np, name, None)
    return table.get(name) or (None if f is None else lambda: f(x, axis))


def _torch(name: str, x: np.ndarray, dim: int | None) -> Run | None:
    import torch

    torch.set_num_threads(1)
    operand, axis = torch.from_numpy(x if dim is not None else x.ravel()), 0 if dim is None else dim
    if name in _NORMS:
        return lambda: torch.linalg.vector_norm(operand, _NORMS[name], axis)
    f = getattr(torch, name)
    return lambda: f(operand, axis)


def _jax(name: str, x: np.ndarray, dim: int | None) -> Run | None:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    operand, axis = jnp.asarray(x if dim is not None else x.ravel()), 0 if dim is None else dim
    table: dict[str, Callable[[Any], Any]] = {
        "var": lambda x: jnp.var(x, axis, ddof=1), "std": lambda x: jnp.std(x, axis, ddof=1),
        "cummax": lambda x: jax.lax.cummax(x, axis), "cummin": lambda x: jax.lax.cummin(x, axis),
        "logcumsumexp": lambda x: jax.lax.cumlogsumexp(x, axis),
        "logsumexp": lambda x: jax.scipy.special.logsumexp(x, axis),
    }  # fmt: skip

    def plain(x: Any) -> Any:
        return jnp.linalg.norm(x, _NORMS[name], axis) if name in _NORMS else getattr(jnp, name)(x, axis)

    program = jax.jit(table.get(name, plain))
    return lambda: jax.block_until_ready(program(operand))
