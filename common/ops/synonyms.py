"""PyTorch's second names of functions."""

from __future__ import annotations

from typing import Any

from common.ops.arithmetic import abs, mul, neg
from common.ops.compare import ge, gt, le, lt, ne
from common.ops.contract import outer
from common.ops.hyperbolic import acosh, asinh, atanh
from common.ops.inverse_trigonometric import acos, asin, atan, atan2
from common.ops.join import vstack
from common.ops.pad import cat
from common.ops.scaled import sub

SYNONYMS: dict[str, Any] = {
    "absolute": abs, "arccos": acos, "arccosh": acosh, "arcsin": asin, "arcsinh": asinh, "arctan": atan,
    "arctan2": atan2, "arctanh": atanh, "concat": cat, "concatenate": cat, "ger": outer, "greater": gt,
    "greater_equal": ge, "less": lt, "less_equal": le, "multiply": mul, "negative": neg, "not_equal": ne,
    "row_stack": vstack, "subtract": sub,
}  # fmt: skip
globals().update(SYNONYMS)

__all__ = list(SYNONYMS)
