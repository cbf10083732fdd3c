"""`.grad` in a trace: what the program sees of it, and what a call leaves there."""

from __future__ import annotations

from typing import Any

from common.autograd.view_histories import in_windows, repeats
from common.tensor.base import TensorBase
from static.graph import Effect
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
        value = self._capture(x._grad, Captured("grad", x), x._grad.payload)
        self._first_grads[id(x)] = self.wrap(value)
        self.grads[id(x)] = (x, self._first_grads[id(x)])
        return self._first_grads[id(x)]

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
        for x, known in self.grads.values():
            if known is grad and self._holds_first(x, grad) and not x._grad.payload.flags.writeable:
                return False
        return not (repeats(grad) or in_windows(grad))

    def _holds_first(self: Any, x: TensorBase, grad: Any) -> bool:
        """Whether `.grad` of a tensor is the object that it was before the call."""
        return grad is not None and self._first_grads.get(id(x)) is grad

    def final_gradients(self: Any) -> tuple[list[TensorBase], list[TensorBase], list[Effect]]:
        """The tensors that get a new gradient; those whose gradient is None; writes to gradients that were there."""
        targets, cleared, added = [], [], []
        for x, grad in self.grads.values():
            if grad is None:
                cleared.append(x)
            elif self._holds_first(x, grad):
                if grad.payload is not (first := self._original[id(x._grad)]):
                    added.append(Effect(first, grad.payload))
            elif x._grad is None or self.payload(grad) is not self._original.get(id(x._grad)):  # else: read, never set
                targets.append(x)
        return targets, cleared, added
