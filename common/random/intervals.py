"""The intervals in which parameters of distributions lie."""

from __future__ import annotations

from typing import Any

import numpy as np

from common.core import mode
from common.core.errors import ArgumentError
from common.core.shapes import unrepeated
from common.tensor.base import TensorBase


def require(x: Any, holds: Any, message: str, found: str = "") -> None:
    """Refuse elements outside an interval, where there are elements to look at; with `found`, of a parameter's user."""
    elements = x.payload if isinstance(x, TensorBase) else x
    if isinstance(elements, (np.ndarray, float, int)):
        outer = ends(elements) if isinstance(elements, np.ndarray) else (elements,)
        if all(map(holds, outer)):
            return
        if found:
            from common.ops.random.parameters import BOUNDS

            message = f"{BOUNDS[message][0]}, but {found}"
        elements = unrepeated(np.asarray(elements))
        raise ArgumentError(message.format(elements[~np.asarray(holds(elements))].ravel()[0]))


def ends(x: np.ndarray) -> tuple[Any, ...]:
    """The least and the largest element, NaN where there is one; nothing of no elements."""
    x = unrepeated(x) if 0 in x.strides else x
    return (x.min(), x.max()) if x.size else ()


def looked_at(x: Any, holds: Any, user: str, found: str) -> Any:
    """The parameter of a distribution, refused as `require` does; inside a trace by an op."""
    if isinstance(x, TensorBase) and not isinstance(x.payload, np.ndarray):
        from common.ops.random.parameters import bounded_

        with mode.no_grad():
            return bounded_(x.detach(), user=user)
    require(x, holds, user, found)
    return x
