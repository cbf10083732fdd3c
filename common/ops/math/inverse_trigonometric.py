"""Inverse trigonometric functions; accuracy figures stand in `common.kernels`."""

from __future__ import annotations

import math
from typing import Any

from common.kernels.math import elementary as e
from common.ops._define import elementwise
from common.ops._samples import inside_unit
from common.ops.math.arithmetic import sqrt
from common.ops.math.compare import eq, where

asin = elementwise(
    "asin", e.asin, (lambda g, x: g / sqrt((1 - x) * (1 + x)),),
    doc="Inverse sine, in [-pi/2, pi/2]; nan outside [-1, 1]. d/dx = 1 / sqrt(1 - x^2).", domain="float", costly=True,
    draw=inside_unit,
)  # fmt: skip
acos = elementwise(
    "acos", e.acos, (lambda g, x: -(g / sqrt((1 - x) * (1 + x))),),
    doc="Inverse cosine, in [0, pi]; nan outside [-1, 1]. d/dx = -1 / sqrt(1 - x^2).", domain="float", costly=True,
    draw=inside_unit,
)  # fmt: skip
atan = elementwise(
    "atan", e.atan, (lambda g, x: g / (1 + x * x),),
    doc="Inverse tangent, in [-pi/2, pi/2]. d/dx = 1 / (1 + x^2).", domain="float", costly=True,
)  # fmt: skip


def _squared_radius(a: Any, b: Any) -> Any:
    """a^2 + b^2, and infinity for 0, by which both slopes become 0."""
    r = a * a + b * b
    return where(eq(r, 0), math.inf, r)


atan2 = elementwise(
    "atan2", lambda a, b: e.atan2(a, b),
    (lambda g, a, b: g * (b / _squared_radius(a, b)),
     lambda g, a, b: g * -(a / _squared_radius(a, b))),
    doc="Angle in [-pi, pi] of the point with abscissa b and ordinate a; zeros and infinities as in C99. "
        "d/da = b / (a^2 + b^2), d/db = -a / (a^2 + b^2), both 0 at 0, 0.",
    domain="float", costly=True,
)  # fmt: skip

__all__ = ["acos", "asin", "atan", "atan2"]
