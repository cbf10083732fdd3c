"""`.grad` in a trace: the program's view of it, and the value that a call leaves there."""

from __future__ import annotations

from typing import Any

import numpy as np

from common.autograd.view_histories import in_windows, repeats
from common.tensor.base import TensorBase
from static.tracing.captured import Captured
from static.tracing.tracer import Tracer


class GradAttributes:
    """The part of a trace that concerns `.grad`; for its attributes see `static.tracing.trace.Trace`."""

    def get_grad(self: Any, x: TensorBase) -> Any:
        """`.grad` as the program sees it."""
        if isinstance(x, Tracer):
            return x._grad
        known = self.grads.get(id(x))
        if known is not None:
            return known[1]
        self.assumed[id(x)] = (x, x._grad is None)
        self._owners[id(x)] = x
        if x._grad is None:
            return None
        self.read_grads.add(id(x))
        if id(x._grad) not in self._values:
            self._capture(x._grad, Captured("grad", x), x._grad.payload)
        self.grads[id(x)] = (x, x._grad)
        return x._grad

    def set_grad(self: Any, x: TensorBase, grad: Any) -> None:
        """`.grad = ...` as an effect."""
        if isinstance(x, Tracer):
            x._grad = grad
            return
        if grad is not None:
            self.payload(grad)
        self._owners[id(x)] = x
        self.grads[id(x)] = (x, grad)

    def adds_in_place(self: Any, grad: TensorBase) -> bool:
        """Whether a sum may be written to the memory of a gradient; else it becomes a tensor of its own."""
        if self.regions and self.payload(grad).node.id < self.regions[-1].first:  # refused when the region is closed
            return False
        if isinstance(grad.payload, np.ndarray) and not grad.payload.flags.writeable:
            return False
        return not (repeats(grad) or in_windows(grad))

    def final_gradients(self: Any) -> tuple[list[TensorBase], list[TensorBase]]:
        """The tensors that get a new gradient; those whose gradient is None."""
        found = list(self.grads.values())
        targets = [x for x, grad in found if grad is not None and grad is not x._grad]
        return targets, [x for x, grad in found if grad is None]
