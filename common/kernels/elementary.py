"""The elementary functions: one source for the oracle and for compiled code, bit for bit the same.

Each works on float32 and float64, is free of branches, calls no mathematical library and uses no fused
multiply-add, so that it gives the same bits wherever and however it is vectorised.

The docstrings give the largest error found, in units in the last place (ulp). float32: over all 2^32
arguments (``python -m benchmarks.exhaustive``). float64, and pow: over 8 million points of the domain (erf:
800,000), a third of them uniform where the function bends and the rest over all exponents; compared in 80-bit
arithmetic, the worst confirmed with mpmath at 160 bits (``python -m benchmarks.accuracy`` takes 600,000 of
them and prints times as well). Polynomial coefficients come from `common.kernels.fit`.
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
    "abs", "clamp", "cos", "erf", "exp", "expm1", "log", "log1p", "maximum", "minimum", "pow", "reciprocal",
    "rsqrt", "sigmoid", "sign", "signbit", "sin", "sqrt", "square", "tan", "tanh",
]  # fmt: skip
