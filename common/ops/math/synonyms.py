"""PyTorch's second names of functions."""

from __future__ import annotations

from typing import Any

from common.ops.linalg.contract import outer
from common.ops.math.arithmetic import abs, mul, neg
from common.ops.math.compare import ge, gt, le, lt, ne
from common.ops.math.hyperbolic import acosh, asinh, atanh
from common.ops.math.inverse_trigonometric import acos, asin, atan, atan2
from common.ops.math.scaled import sub
from common.ops.shape.cat import cat
from common.ops.shape.join import vstack

SYNONYMS: dict[str, Any] = {
    "absolute": abs, "arccos": acos, "arccosh": acosh, "arcsin": asin, "arcsinh": asinh, "arctan": atan,
    "arctan2": atan2, "arctanh": atanh, "concat": cat, "concatenate": cat, "ger": outer, "greater": gt,
    "greater_equal": ge, "less": lt, "less_equal": le, "multiply": mul, "negative": neg, "not_equal": ne,
    "row_stack": vstack, "subtract": sub,
}  # fmt: skip
globals().update(SYNONYMS)

__all__ = list(SYNONYMS)
