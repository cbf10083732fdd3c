"""Adding a total to `.grad` of a leaf."""

from __future__ import annotations

from typing import Any

import numpy as np

from common.autograd.backward_pass import added
from common.autograd.view_histories import rebind
from common.core import mode
from common.core.locks import make_lock
from common.core.source_lines import user_frame
from common.ops.math.cast import clone
from common.tensor.base import TensorBase
from common.tensor.write_log import is_shared, log_write, put


def own(total: np.ndarray, seen: set[int]) -> np.ndarray:
    """A total that no other gradient shares memory with: rules may hand on what they were given."""
    if total.base is not None or id(total) in seen:
        total = total.copy()
    seen.add(id(total))
    return total


def _has_form_of(x: Any, y: Any) -> bool:
    return bool(x.shape == y.shape and x.dtype == y.dtype)


#: Held while a total is added to `.grad`: threads that share a leaf add one after the other.
_adding = make_lock()


def accumulate(leaf: TensorBase, total: TensorBase, create_graph: bool) -> None:
    """``.grad = old + total``; where there is no old one the total, or a copy if the pass is recorded.

    Unless the pass is recorded, the sum is written to the memory of the old gradient, as PyTorch documents: whoever
    holds that, or a view of it, sees it.
    """
    with _adding:
        trace = mode.current_trace()
        old = leaf._grad if trace is None else leaf.grad
        if old is None and not create_graph:
            if trace is None and _has_form_of(leaf.payload, total.payload):
                leaf._grad = total  # as the assignment below does, in a third of the time
            else:
                leaf.grad = total
        elif old is None:
            with mode.GradSwitch(True):
                leaf.grad = clone(total)
        elif create_graph or trace is not None:
            with mode.GradSwitch(create_graph):
                new = old + total
            if create_graph or trace is None or not trace.adds_in_place(old):
                leaf.grad = new
            else:
                rebind(old, new, "add", False)
        elif type(array := old.payload) is np.ndarray and array.flags.writeable and not is_shared(array):
            put(array, added(array, total.payload))
            log_write(array, *user_frame(4))
        else:
            with mode.no_grad():
                leaf.grad = old + total
