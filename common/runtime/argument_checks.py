"""Checks of the arguments of a compiled program."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from common.runtime.table_words import SizeWord

ARRAY, FLOAT, INT = 0, 1, 2


class ArgumentCheck(NamedTuple):
    """The form that one argument of a program must have, and the slot that receives its address."""

    kind: int
    dtype: np.dtype[Any]
    shape: tuple[Any, ...]
    writes: bool
    slot: int

    @property
    def is_sized(self) -> bool:
        """Whether its shape depends on sizes."""
        return SizeWord in map(type, self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of an array argument; 0 for a number, which cannot overlap anything."""
        return math.prod(self.shape) * self.dtype.itemsize if self.kind == ARRAY else 0
