"""Where the arrays of captured inputs come from."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Captured(NamedTuple):
    """Where the array of a captured input comes from at each call.

    Attributes
    ----------
    kind : "tensor" (its data), "grad" (the data of its gradient) or "array".
    owner : the tensor or array.
    """

    kind: str
    owner: Any

    @property
    def payload(self) -> np.ndarray:
        """The array of this call."""
        if self.kind == "array":
            return self.owner
        return self.owner.payload if self.kind == "tensor" else self.owner._grad.payload
