"""Memory that belongs to one kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from common.core.numerics import BLOCK, LANES


@dataclass(frozen=True, slots=True)
class ColumnScratch:
    """Bytes of accumulators for sums of `columns` columns of `rows` rows, known when sizes are."""

    rows: Any
    columns: Any
    itemsize: int
    tile: int | None = None
    more: int = 0

    def nbytes(self, rows: int, columns: int) -> int:
        """The bytes for concrete sizes: LANES rows of accumulators per level of blocks, and for `more` levels."""
        levels = 1 + self.more
        while rows > BLOCK:
            rows, levels = -(-rows // BLOCK), levels + 1
        return levels * LANES * min(columns, self.tile or columns) * self.itemsize


@dataclass(eq=False, slots=True)
class Scratch:
    """Temporary memory of one kernel: bytes, which may be a Dim or known only when sizes are; None for regions."""

    dtype: np.dtype[Any]
    nbytes: Any
