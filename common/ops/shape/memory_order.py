"""How the elements of a tensor lie in memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from common.core.op import REGISTRY
from common.ops.shape.view import lies_in_order
from common.ops.shape.view_scatter import path_along, placed
from common.tensor.base import TensorBase
from common.tensor.view_families import family_of


def contiguous(self: TensorBase, memory_format: Any = None) -> TensorBase:
    """The tensor itself where its elements lie one after the other in C order; else a copy in which they do.

    Parameters
    ----------
    memory_format : accepted; the order is always C's.

    In a traced program what is no view lies in order, arguments among them, and so do views whose strides say so.
    """
    return self if _in_order(self) else REGISTRY["clone"](self)


def _in_order(x: TensorBase) -> bool:
    array = x.payload
    if isinstance(array, np.ndarray):
        return bool(array.flags.c_contiguous)
    _, base, steps = family_of(x)
    if not steps:
        return True
    place = placed(base.shape, path_along(steps, base))
    return place is None or lies_in_order(*place[1:])


METHODS = {"contiguous": contiguous}
