"""Powers of two, logarithms to other bases and of sums, and the length of a vector of two."""

from __future__ import annotations

import math
from typing import Any

from common.core.dtypes import bool_
from common.core.op import Op
from common.kernels.math import elementary as e
from common.ops._define import elementwise
from common.ops._samples import positive
from common.ops.math.transcendental import sigmoid

_LN2, _LN10 = math.log(2), math.log(10)


def _less(a: Any, b: Any) -> Any:
    """a - b; of bools too, which `-` refuses."""
    a, b = (x * 1.0 if isinstance(x, bool) or getattr(x, "dtype", None) == bool_ else x for x in (a, b))
    return a - b



exp2 = elementwise(
    "exp2", e.exp2, (lambda g, y: g * (y * _LN2),), doc="2 ** x. d/dx = y ln 2.", domain="float", costly=True
)  # fmt: skip
log2 = elementwise(
    "log2", e.log2, (lambda g, x: g / (x * _LN2),), doc="Logarithm to the base 2; nan below 0. d/dx = 1 / (x ln 2).",
    domain="float", costly=True, draw=positive,
)  # fmt: skip
log10 = elementwise(
    "log10", e.log10, (lambda g, x: g / (x * _LN10),),
    doc="Logarithm to the base 10; nan below 0. d/dx = 1 / (x ln 10).", domain="float", costly=True, draw=positive,
)  # fmt: skip
hypot: Op = elementwise(
    "hypot", lambda a, b: e.hypot(a, b),
    (lambda g, y, a: g * (a / y),
     lambda g, y, b: g * (b / y)),
    doc="sqrt(a^2 + b^2) without overflow; inf if either is, even beside nan. d/da = a / y, so nan at 0, 0.",
    domain="real", costly=True,
)  # fmt: skip
logaddexp = elementwise(
    "logaddexp", lambda a, b: e.logaddexp(a, b),
    (lambda g, a, b: g * sigmoid(_less(a, b)),
     lambda g, a, b: g * sigmoid(_less(b, a))),
    doc="log(e^a + e^b). d/da = sigmoid(a - b), d/db = sigmoid(b - a).", domain="real", costly=True,
)  # fmt: skip
logaddexp2 = elementwise(
    "logaddexp2", lambda a, b: e.logaddexp2(a, b),
    (lambda g, a, b: g * sigmoid(_less(a, b) * _LN2),
     lambda g, a, b: g * sigmoid(_less(b, a) * _LN2)),
    doc="log2(2^a + 2^b). d/da = sigmoid((a - b) ln 2), d/db = sigmoid((b - a) ln 2).", domain="real", costly=True,
)  # fmt: skip

__all__ = ["exp2", "hypot", "log10", "log2", "logaddexp", "logaddexp2"]
