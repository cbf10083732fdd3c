"""PyTorch and JAX as judges of single ops, where they are installed: for `compare`, never needed otherwise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from common.core.errors import ArgumentError
from static.graph import Node

_IN_JAX = {
    "neg": "negative", "sub": "subtract", "mul": "multiply", "div": "true_divide", "pow": "power", "asin": "arcsin",
    "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
    "amax": "max", "amin": "min", "gt": "greater", "lt": "less", "ge": "greater_equal", "le": "less_equal",
    "eq": "equal", "ne": "not_equal",
}  # fmt: skip
_IN_JAX_SPECIAL = {"erf": "erf", "erfc": "erfc", "lgamma": "gammaln", "digamma": "digamma", "sigmoid": "expit"}


def evaluator(name: str) -> Callable[[Node, Sequence[Any], Mapping[str, Any]], np.ndarray | None]:
    """A function that evaluates a node's op on arrays; it returns None for an op that the peer has no counterpart of.

    Raises
    ------
    ArgumentError : the peer is not installed.
    """
    if find_spec(name) is None:
        raise ArgumentError(f"compare: {name} is not installed")
    return _torch if name == "torch" else _jax


def _torch(node: Node, operands: Sequence[Any], attrs: Mapping[str, Any]) -> np.ndarray | None:
    torch = import_module("torch")
    given = [torch.from_numpy(np.array(x)) for x in operands]
    return _apply(node, given, attrs, getattr(torch, node.name, None), lambda x: x.numpy(), "dim", "keepdim")


def _jax(node: Node, operands: Sequence[Any], attrs: Mapping[str, Any]) -> np.ndarray | None:
    jax = import_module("jax")
    jax.config.update("jax_enable_x64", True)
    given = [jax.numpy.asarray(x) for x in operands]
    function = getattr(jax.numpy, _IN_JAX.get(node.name, node.name), None)
    if node.name in _IN_JAX_SPECIAL:
        function = getattr(jax.scipy.special, _IN_JAX_SPECIAL[node.name])
    return _apply(node, given, attrs, function, np.asarray, "axis", "keepdims")


def _apply(
    node: Node,
    given: list[Any],
    attrs: Mapping[str, Any],
    function: Callable[..., Any] | None,
    back: Callable[[Any], np.ndarray],
    dim: str,
    keepdim: str,
) -> np.ndarray | None:
    assert node.op is not None
    if node.name == "mm":
        left, right = (x.T if attrs[flag] else x for x, flag in zip(given, ("trans_a", "trans_b"), strict=True))
        return back(left @ right)
    if function is None:
        return None
    if node.op.kind == "elementwise" and not node.op.attrs:
        return back(function(*given))
    if node.name in ("sum", "amax", "amin"):
        return back(function(given[0], **{dim: attrs["dim"], keepdim: attrs["keepdim"]}))
    return None
