"""Numbers of a dtype as source text of kernels."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np


@cache
def dtype_name(dtype: np.dtype[Any]) -> str:
    """The name of a dtype in kernel source."""
    return "bool_" if dtype.kind == "b" else dtype.name


def literal(value: Any, dtype: np.dtype[Any]) -> str:
    """A number as source text of exactly this dtype."""
    if dtype.kind == "b":
        return repr(bool(value))
    if dtype.kind != "f":
        return f"{dtype_name(dtype)}({np.int64(value).astype(dtype)})"  # wraps, as arithmetic does
    with np.errstate(over="ignore"):
        number = float(dtype.type(value))
    text = repr(number)
    if number != number:
        text = "1e999 - 1e999"
    elif number in (float("inf"), float("-inf")):
        text = text.replace("inf", "1e999")
    return f"{dtype_name(dtype)}({text})"
