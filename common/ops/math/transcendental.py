"""Elementary functions and the activations made of them; accuracy figures stand in `common.kernels`."""

from __future__ import annotations

import math
from typing import Any

from common.core.errors import ArgumentError
from common.core.op import Op
from common.kernels.math import elementary as e
from common.ops._define import elementwise
from common.ops._samples import above_minus_one, positive

exp = elementwise(
    "exp", e.exp, (lambda g, y: g * y,), doc="e ** x. d/dx = y.", domain="float", costly=True
)  # fmt: skip
expm1 = elementwise(
    "expm1", e.expm1, (lambda g, y: g * (y + 1),), doc="e ** x - 1. d/dx = y + 1.", domain="float", costly=True
)  # fmt: skip
log = elementwise(
    "log", e.log, (lambda g, x: g / x,), doc="Natural logarithm; nan below 0. d/dx = 1 / x.", domain="float",
    costly=True, draw=positive,
)  # fmt: skip
log1p = elementwise(
    "log1p", e.log1p, (lambda g, x: g / (x + 1),), doc="log(1 + x). d/dx = 1 / (1 + x).", domain="float",
    costly=True, draw=above_minus_one, node_name="Log1P",
)  # fmt: skip
sin = elementwise(
    "sin", e.sin, (lambda g, x: g * cos(x),), doc="Sine. d/dx = cos(x).", domain="float", costly=True
)  # fmt: skip
cos: Op = elementwise(
    "cos", e.cos, (lambda g, x: g * -sin(x),), doc="Cosine. d/dx = -sin(x).", domain="float", costly=True
)  # fmt: skip
tanh = elementwise(
    "tanh", e.tanh, (lambda g, y: g * (1 - y * y),), doc="Hyperbolic tangent. d/dx = 1 - y^2.", domain="float",
    costly=True,
)  # fmt: skip
sigmoid = elementwise(
    "sigmoid", e.sigmoid, (lambda g, y: g * ((1 - y) * y),), doc="1 / (1 + e^-x). d/dx = y (1 - y).",
    domain="float", costly=True,
)  # fmt: skip
erf = elementwise(
    "erf", e.erf, (lambda g, x: g * (2 / math.sqrt(math.pi) * exp(-(x * x))),),
    doc="Error function. d/dx = 2 / sqrt(pi) e^(-x^2).", domain="float", costly=True,
)  # fmt: skip

_SQRT_HALF = math.sqrt(0.5)
_DENSITY = 1 / math.sqrt(2 * math.pi)
_TANH_SCALE = math.sqrt(2 / math.pi)
_TANH_CUBIC = 0.044715


def _gelu_rule(g: Any, x: Any) -> Any:
    cdf = 0.5 * (1 + erf(x * _SQRT_HALF))
    pdf = _DENSITY * exp(-0.5 * (x * x))
    return g * (cdf + x * pdf)


def _gelu_tanh_rule(g: Any, x: Any) -> Any:
    square = x * x
    t = tanh(_TANH_SCALE * (x + _TANH_CUBIC * (square * x)))
    slope = _TANH_SCALE * (1 + 3 * _TANH_CUBIC * square)
    return g * (0.5 * (1 + t) + 0.5 * x * ((1 - t * t) * slope))


gelu_erf = elementwise(
    "gelu_erf", lambda x: 0.5 * x * (1.0 + e.erf(x * _SQRT_HALF)), (_gelu_rule,),
    doc="x Phi(x), Phi the normal distribution function, phi its density. d/dx = Phi(x) + x phi(x).", domain="real",
    node_name="Gelu", costly=True,
)  # fmt: skip

gelu_tanh = elementwise(
    "gelu_tanh", lambda x: 0.5 * x * (1.0 + e.tanh(_TANH_SCALE * (x + _TANH_CUBIC * (x * x * x)))),
    (_gelu_tanh_rule,),
    costly=True, doc="x (1 + t) / 2, t = tanh(c (x + 0.044715 x^3)), c = sqrt(2 / pi). "
        "d/dx = (1 + t) / 2 + x (1 - t^2) c (1 + 0.134145 x^2) / 2. Source: Hendrycks and Gimpel, GELUs, 2016.",
    domain="real", node_name="Gelu",
)  # fmt: skip

def gelu(x: Any, approximate: str = "none") -> Any:
    """Gaussian error linear unit; `approximate` is "none" (erf) or "tanh".

    Parameters
    ----------
    x : (...), of floats.
    approximate : "none" or "tanh".

    Raises
    ------
    ArgumentError : another value of `approximate`.
    """
    if approximate not in ("none", "tanh"):
        raise ArgumentError(f"approximate argument must be either none or tanh, got {approximate!r}")
    return gelu_erf(x) if approximate == "none" else gelu_tanh(x)


__all__ = ["cos", "erf", "exp", "expm1", "gelu", "log", "log1p", "sigmoid", "sin", "tanh"]
