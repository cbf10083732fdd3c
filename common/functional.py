"""The public functions, engine-neutral: what they compute follows from their operands."""

from __future__ import annotations

from typing import Any

from common.errors import ArgumentError
from common.ops import constant as _constant  # noqa: F401  registers what only graphs hold
from common.ops.arithmetic import (
    abs,
    add,
    div,
    mul,
    neg,
    ones_like,
    pow,
    reciprocal,
    rsqrt,
    sign,
    sqrt,
    square,
    sub,
    zeros_like,
)
from common.ops.cast import clone
from common.ops.compare import (
    clamp_max,
    clamp_min,
    eq,
    ge,
    gt,
    isnan,
    le,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    lt,
    maximum,
    minimum,
    ne,
    relu,
    where,
)
from common.ops.extremes import argmax, argmin, max, min
from common.ops.getitem import getitem
from common.ops.index import embedding, gather, index_select, scatter_add
from common.ops.linalg import addmm, bmm, linear, matmul, mm
from common.ops.loss import cross_entropy, mse_loss, nll_loss
from common.ops.normalize import layer_norm, log_softmax, logsumexp, softmax
from common.ops.pad import cat, stack
from common.ops.reduce import amax, amin, mean, sum
from common.ops.transcendental import (
    cos,
    erf,
    exp,
    expm1,
    gelu_erf,
    gelu_tanh,
    log,
    log1p,
    sigmoid,
    sin,
    tanh,
)
from common.ops.view import (
    broadcast_to,
    expand,
    flatten,
    narrow,
    permute,
    reshape,
    select,
    squeeze,
    transpose,
    unsqueeze,
)
from common.ops.view import view_ as view


def clamp(x: Any, min: float | None = None, max: float | None = None) -> Any:
    """`x` limited to [min, max]; where both bounds cross, `max` wins.

    Parameters
    ----------
    x : (...)
    min, max : bounds; None for none.

    Raises
    ------
    ArgumentError : neither bound is given.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.clamp(tw.tensor([-2.0, 0.5, 2.0]), -1, 1)
    tensor([-1.0000,  0.5000,  1.0000])
    """
    if min is None and max is None:
        raise ArgumentError("clamp(): at least one of 'min' or 'max' must not be None")
    if min is not None:
        x = clamp_min(x, min)
    return x if max is None else clamp_max(x, max)


def gelu(x: Any, approximate: str = "none") -> Any:
    """Gaussian error linear unit; `approximate` is "none" (erf) or "tanh".

    Parameters
    ----------
    x : (...); ints become float32.
    approximate : "none" or "tanh".

    Raises
    ------
    ArgumentError : another value of `approximate`.
    """
    if approximate not in ("none", "tanh"):
        raise ArgumentError(f"approximate argument must be either none or tanh, got {approximate!r}")
    return gelu_erf(x) if approximate == "none" else gelu_tanh(x)


__all__ = [
    "abs", "add", "addmm", "amax", "amin", "argmax", "argmin", "bmm", "broadcast_to", "cat", "clamp", "clone", "cos",
    "cross_entropy", "div", "embedding", "eq", "erf", "exp", "expand", "expm1", "flatten", "gather", "ge", "gelu",
    "getitem", "gt", "index_select", "isnan", "layer_norm", "le", "linear", "log", "log1p", "log_softmax",
    "logical_and", "logical_not", "logical_or", "logical_xor", "logsumexp", "lt", "matmul", "max", "maximum", "mean",
    "min", "minimum", "mm", "mse_loss", "mul", "narrow", "ne", "neg", "nll_loss", "ones_like", "permute", "pow",
    "reciprocal", "relu", "reshape", "rsqrt", "scatter_add", "select", "sigmoid", "sign", "sin", "softmax", "sqrt",
    "square", "squeeze", "stack", "sub", "sum", "tanh", "transpose", "unsqueeze", "view", "where", "zeros_like",
]  # fmt: skip
