"""Reducers: the function that joins two elements, and the kernels that reduce rows and columns."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Reducer(NamedTuple):
    """A kind of reduction, as kernel text calls its parts.

    Attributes
    ----------
    join : the scalar function of two elements.
    row : the function that reduces a row.
    start : what it begins with; None for an extreme, which begins with what every element replaces.
    columns : where columns are reduced in LANES lanes, the end of the names of the functions that start, carry and
        finish them; "" where one accumulator per column will do.
    registers : whether a loop over a row may hold its lanes in registers.
    """

    join: str
    row: str
    start: int | None = None
    columns: str = ""
    registers: bool = False

    def first(self, dtype: np.dtype[Any]) -> Any:
        """The first value of an accumulator of `dtype`."""
        if self.start is not None:
            return self.start
        highest = self.join == "minimum"
        if dtype.kind == "f":
            return float("inf" if highest else "-inf")
        if dtype == np.bool_:
            return highest
        info = np.iinfo(dtype)
        return info.max if highest else info.min


SUM = Reducer("add", "block_sum", 0, "columns", registers=True)
PRODUCT = Reducer("mul", "block_product", 1, "products")

#: By the name that a reduction's record has in `reduce`.
REDUCERS = {
    "sum": SUM,
    "prod": PRODUCT,
    "max": Reducer("maximum", "row_max"),
    "min": Reducer("minimum", "row_min"),
}

__all__ = ["PRODUCT", "REDUCERS", "SUM", "Reducer"]
