"""The elementary functions: one source for the oracle and for compiled code, bit for bit the same.

Each works on float32 and float64, is free of branches, calls no mathematical library and uses no fused
multiply-add, so that it gives the same bits wherever and however it is vectorised. Bounds on errors are in the
docstrings, in units in the last place (ulp), as measured by ``python -m benchmarks.accuracy``.
"""

from common.kernels.basic import (
    abs,
    clamp,
    maximum,
    minimum,
    reciprocal,
    rsqrt,
    sign,
    signbit,
    sqrt,
    square,
)
from common.kernels.error_function import erf
from common.kernels.exponential import exp, expm1
from common.kernels.hyperbolic import sigmoid, tanh
from common.kernels.logarithm import log, log1p
from common.kernels.power import pow
from common.kernels.trigonometric import cos, sin, tan

__all__ = [
    "abs", "clamp", "cos", "erf", "exp", "expm1", "log", "log1p", "maximum", "minimum", "pow", "reciprocal", "rsqrt",
    "sigmoid", "sign", "signbit", "sin", "sqrt", "square", "tan", "tanh",
]  # fmt: skip
