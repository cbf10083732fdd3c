"""The elementary functions: one source for the oracle and for compiled code, bit for bit the same.

Each works on float32 and float64, is free of branches, calls no mathematical library and uses no fused
multiply-add, so that it gives the same bits wherever and however it is vectorised.

The docstrings give the largest error found, in units in the last place (ulp). float32 functions of one argument: over
all 2^32 arguments (``python -m benchmarks.exhaustive``). Others: over millions of points, uniform where the function
bends, over all exponents, near what is special in it, and random bit patterns, the worst confirmed with mpmath at 160
bits (``python -m benchmarks.accuracy`` takes some 600,000 of them and prints times as well). Polynomial coefficients
come from `tests.oracle.fit`.
"""

from common.kernels.math.complementary_error import erfc, erfinv
from common.kernels.math.compound import hypot, logaddexp, logaddexp2, logsigmoid, mish, silu, softplus, xlogy
from common.kernels.math.error_function import erf
from common.kernels.math.exact import abs, clamp, maximum, minimum, reciprocal, rsqrt, sign, signbit, sqrt, square
from common.kernels.math.exponential import exp, exp2, expm1
from common.kernels.math.gamma import digamma, lgamma
from common.kernels.math.hyperbolic import cosh, sigmoid, sinh, tanh
from common.kernels.math.inverse_hyperbolic import acosh, asinh, atanh
from common.kernels.math.inverse_trigonometric import acos, asin, atan, atan2
from common.kernels.math.logarithm import log, log1p
from common.kernels.math.logarithm_bases import log2, log10
from common.kernels.math.power import pow
from common.kernels.math.trigonometric import cos, sin, tan

__all__ = [
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "clamp", "cos", "cosh", "digamma",
    "erf", "erfc", "erfinv", "exp", "exp2", "expm1", "hypot", "lgamma", "log", "log10", "log1p", "log2",
    "logaddexp", "logaddexp2", "logsigmoid", "maximum", "minimum", "mish", "pow", "reciprocal", "rsqrt",
    "sigmoid", "sign", "signbit", "silu", "sin", "sinh", "softplus", "sqrt", "square", "tan", "tanh", "xlogy",
]  # fmt: skip
