"""The tangent, the hyperbolic functions and their inverses."""

from __future__ import annotations

from typing import Any

import numpy as np

from common.core.op import Op
from common.kernels.math import elementary as e
from common.ops._define import elementwise
from common.ops._samples import Rng
from common.ops.math.arithmetic import sqrt
from common.ops.math.logarithms import hypot


def _above_one(rng: Rng, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Values between 1.3 and 4."""
    return np.asarray(rng.uniform(1.3, 4, shape), dtype)


def _inside_one(rng: Rng, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Values between -0.8 and 0.8; also angles away from the poles of the tangent."""
    return np.asarray(rng.uniform(-0.8, 0.8, shape), dtype)


tan = elementwise(
    "tan", e.tan, (lambda g, y: g * (1 + y * y),), doc="Tangent. d/dx = 1 + y^2.", domain="float", costly=True,
    draw=_inside_one,
)  # fmt: skip
sinh: Op = elementwise(
    "sinh", e.sinh, (lambda g, x: g * cosh(x),), doc="Hyperbolic sine. d/dx = cosh(x).", domain="float", costly=True
)  # fmt: skip
cosh: Op = elementwise(
    "cosh", e.cosh, (lambda g, x: g * sinh(x),), doc="Hyperbolic cosine. d/dx = sinh(x).", domain="float", costly=True
)  # fmt: skip
asinh = elementwise(
    "asinh", e.asinh, (lambda g, x: g / hypot(x, 1.0),), doc="Inverse of sinh. d/dx = 1 / sqrt(x^2 + 1).",
    domain="float", costly=True,
)  # fmt: skip
acosh = elementwise(
    "acosh", e.acosh, (lambda g, x: g / (sqrt(x - 1) * sqrt(x + 1)),),
    doc="Inverse of cosh, not negative; nan below 1. d/dx = 1 / sqrt(x^2 - 1).", domain="float", costly=True,
    draw=_above_one,
)  # fmt: skip
atanh = elementwise(
    "atanh", e.atanh, (lambda g, x: g / ((1 - x) * (1 + x)),),
    doc="Inverse of tanh; infinite at +-1, nan beyond. d/dx = 1 / (1 - x^2).", domain="float", costly=True,
    draw=_inside_one,
)  # fmt: skip

__all__ = ["acosh", "asinh", "atanh", "cosh", "sinh", "tan"]
