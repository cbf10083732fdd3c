"""Activations of one expression; parameters are numbers, or tensors that broadcast."""

from __future__ import annotations

from typing import Any

from common.compiler.primitives import select
from common.core.errors import ArgumentError, DTypeError
from common.kernels.math import elementary as e
from common.ops._define import elementwise
from common.ops.math.compare import clamp, clamp_max, ge, gt, le, logical_and, logical_or, lt, where
from common.ops.math.transcendental import exp, expm1, sigmoid, tanh

_SELU_ALPHA = 1.6732632423543772
_SELU_SCALE = 1.0507009873554805

softplus_scaled = elementwise(
    "softplus_scaled", lambda x, beta, threshold: select(x * beta > threshold, x, e.softplus(x * beta) / beta),
    (lambda g, x, beta, threshold: where(gt(x * beta, threshold), g, g * sigmoid(x * beta)),
     lambda g, y, x, beta, threshold: where(gt(x * beta, threshold), 0, g * ((x * sigmoid(x * beta) - y) / beta))),
    doc="log(1 + e^(beta x)) / beta, and x where beta x > threshold. d/dx = sigmoid(beta x), and 1 above; "
        "d/dbeta = (x sigmoid(beta x) - y) / beta, and 0 above.", domain="real", node_name="Softplus", costly=True,
)  # fmt: skip

logsigmoid = elementwise(
    "logsigmoid", e.logsigmoid, (lambda g, x: g * sigmoid(-x),),
    doc="log(sigmoid(x)) without underflow. d/dx = sigmoid(-x).", domain="real", node_name="LogSigmoid", costly=True,
)  # fmt: skip


def _silu_rule(g: Any, x: Any) -> Any:
    s = sigmoid(x)
    return g * (s * (1 + x * (1 - s)))


silu = elementwise(
    "silu", e.silu, (_silu_rule,), doc="x sigmoid(x). d/dx = s (1 + x (1 - s)), s = sigmoid(x).", domain="real",
    costly=True,
)  # fmt: skip


def _mish_rule(g: Any, x: Any) -> Any:
    t = tanh(-logsigmoid(-x))
    return g * (t + x * ((1 - t * t) * sigmoid(x)))


mish = elementwise(
    "mish", e.mish, (_mish_rule,),
    doc="x t, t = tanh(log(1 + e^x)). d/dx = t + x (1 - t^2) sigmoid(x). Source: Misra, Mish, 2019.", domain="real",
    costly=True,
)  # fmt: skip

elu_scaled = elementwise(
    "elu_scaled", lambda x, alpha: select(x > 0.0, x, alpha * e.expm1(x)),
    (lambda g, x, alpha: where(gt(x, 0), g, g * (alpha * exp(clamp_max(x, 0)))),
     lambda g, x: where(gt(x, 0), 0, g * expm1(clamp_max(x, 0)))),
    doc="x where x > 0, else alpha (e^x - 1). d/dx = 1, else alpha e^x; d/dalpha = 0, else e^x - 1. "
        "Source: Clevert and others, ELU, 2015.", domain="real", node_name="Elu", costly=True,
)  # fmt: skip


def _celu_alpha(g: Any, x: Any, alpha: Any) -> Any:
    u = where(gt(x, 0), 0, x / alpha)
    return where(gt(x, 0), 0, g * (expm1(u) - u * exp(u)))


celu_scaled = elementwise(
    "celu_scaled", lambda x, alpha: select(x > 0.0, x, alpha * e.expm1(x / alpha)),
    (lambda g, x, alpha: where(gt(x, 0), g, g * exp(where(gt(x, 0), 0, x / alpha))),
     _celu_alpha),
    doc="x where x > 0, else alpha (e^u - 1), u = x / alpha. d/dx = 1, else e^u; d/dalpha = 0, else "
        "e^u - 1 - u e^u. Source: Barron, CELU, 2017.", domain="real", node_name="Celu", costly=True,
)  # fmt: skip

leaky_scaled = elementwise(
    "leaky_scaled", lambda x, slope: select(x > 0.0, x, x * slope),
    (lambda g, x, slope: where(gt(x, 0), g, g * slope),
     lambda g, x: where(gt(x, 0), 0, g * x)),
    doc="x where x > 0, else x slope. d/dx = 1, else slope; d/dslope = 0, else x.", domain="real",
    node_name="LeakyRelu",
)  # fmt: skip

hardtanh_between = elementwise(
    "hardtanh_between", lambda x, low, high: e.clamp(x, low, high),
    (lambda g, x, low, high: where(logical_and(gt(x, low), lt(x, high)), g, 0),
     lambda g, x, low, high: where(logical_and(le(x, low), le(low, high)), g, 0),
     lambda g, x, low, high: where(logical_or(ge(x, high), gt(low, high)), g, 0)),
    doc="minimum(maximum(x, low), high). d/dx = 1 where low < x < high, 0 at the bounds unlike clamp; d/dlow = 1 "
        "where x <= low, d/dhigh = 1 where x >= high.", domain="float", node_name="Hardtanh",
)  # fmt: skip


def softplus(x: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """log(1 + e^(beta x)) / beta, a smooth relu; x itself where beta x > threshold.

    Parameters
    ----------
    x : (...), of floats.
    beta, threshold : numbers, or tensors that broadcast.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.softplus(tw.tensor([-100.0, 0.0, 100.0]))
    tensor([3.7835e-44, 6.9315e-01, 1.0000e+02])
    """
    return softplus_scaled(x, beta, threshold)


def elu(x: Any, alpha: float = 1.0) -> Any:
    """x where x > 0, else alpha (e^x - 1).

    Parameters
    ----------
    x : (...), of floats.
    alpha : number.
    """
    return elu_scaled(x, alpha)


def selu(x: Any) -> Any:
    """Scaled elu, 1.0507... elu(x, 1.6732...), which keeps mean 0 and variance 1.

    Parameters
    ----------
    x : (...), of floats.

    References
    ----------
    Klambauer and others, "Self-Normalizing Neural Networks", 2017.
    """
    return elu_scaled(x, _SELU_ALPHA) * _SELU_SCALE


def celu(x: Any, alpha: float = 1.0) -> Any:
    """x where x > 0, else alpha (e^(x / alpha) - 1).

    Parameters
    ----------
    x : (...), of floats.
    alpha : number, not 0.

    Raises
    ------
    ArgumentError : `alpha` is 0.
    """
    if type(alpha) in (int, float) and alpha == 0:
        raise ArgumentError("celu(): alpha cannot be 0 for CELU")
    return celu_scaled(x, alpha)


def leaky_relu(x: Any, negative_slope: float = 0.01) -> Any:
    """x where x > 0, else x negative_slope.

    Parameters
    ----------
    x : (...), of floats.
    negative_slope : number.
    """
    return leaky_scaled(x, negative_slope)


def hardtanh(x: Any, min_val: float = -1.0, max_val: float = 1.0) -> Any:
    """x limited to [min_val, max_val]; the derivative is 0 at the bounds.

    Parameters
    ----------
    x : (...); ints stay ints, between bounds rounded towards zero.
    min_val, max_val : numbers.

    Raises
    ------
    ArgumentError : min_val is greater than max_val.
    DTypeError : bools.
    """
    if isinstance(min_val, (int, float)) and isinstance(max_val, (int, float)) and min_val > max_val:
        raise ArgumentError(f"hardtanh(): min_val cannot be greater than max_val, got {min_val} and {max_val}")
    return _between("hardtanh", x, min_val, max_val)


def _between(op: str, x: Any, low: Any, high: Any) -> Any:
    """`hardtanh_between` of floats; integers stay integers, between bounds rounded towards zero."""
    if x.dtype.kind == "b":
        raise DTypeError(f"{op}(): Bool inputs not supported for hardtanh")
    if x.dtype.kind == "f" or not (isinstance(low, (int, float)) and isinstance(high, (int, float))):
        return hardtanh_between(x, low, high)
    return clamp(x, int(low), int(high))


def relu6(x: Any) -> Any:
    """x limited to [0, 6]; the derivative is 0 at the bounds.

    Parameters
    ----------
    x : (...); ints stay ints.

    Raises
    ------
    DTypeError : bools.
    """
    return _between("relu6", x, 0.0, 6.0)


__all__ = [
    "celu", "elu", "hardtanh", "leaky_relu", "logsigmoid", "mish", "relu6", "selu", "silu", "softplus",
]  # fmt: skip
