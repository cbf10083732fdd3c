"""A tensor's place in the graph, as users change it: `detach`, `requires_grad`, `data`."""

from __future__ import annotations

from typing import Any

import numpy as np

from common.core import mode
from common.core.errors import ArgumentError, DTypeError, GradientError
from common.core.source_lines import warn_user
from common.tensor import inference
from common.tensor.arrays import to_array
from common.tensor.base import TensorBase, wrap
from common.tensor.view_families import leave_family
from common.tensor.write_log import note_detached, share_count


def detach(self: TensorBase) -> TensorBase:
    """The same elements without history; shares memory."""
    trace = mode.current_trace()
    if trace is None:
        alias = wrap(self.payload)
        if mode.inference_seen:
            inference.mark(alias, inference.is_inference(self))
        return alias
    alias = trace.wrap(trace.payload(self))
    trace.note_alias(alias, self, same=True)
    return alias


def requires_grad_(self: TensorBase, requires_grad: bool = True) -> TensorBase:
    """Switch recording for a leaf.

    Raises
    ------
    DTypeError : the dtype is not floating point.
    GradientError : switching off for a tensor with history, or on for an inference tensor outside its mode.
    """
    if requires_grad and self.dtype.kind != "f":
        raise DTypeError(f"only Tensors of floating point dtype can require gradients; this one is {self.dtype}")
    if requires_grad and inference.is_inference(self) and not mode.is_inference_mode_enabled():
        raise GradientError(
            "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed. Make a clone to get "
            "a normal tensor."
        )
    if not requires_grad and self.grad_fn is not None:
        raise GradientError("you can only change requires_grad flags of leaf variables; use .detach() here")
    if self._requires_grad is not bool(requires_grad):
        mode.note_change()  # compiled programs rely on it
    self._requires_grad = bool(requires_grad)
    return self


def detach_(self: TensorBase) -> TensorBase:
    """Forget the history of this tensor: it becomes a leaf that needs no gradient.

    Raises
    ------
    GradientError : it is a view, whose elements belong to another tensor.
    """
    if type(getattr(self, "_family", None)) is tuple and self.grad_fn is not None:
        raise GradientError("Can't detach views in-place. Use detach() instead.")
    if self.grad_fn is not None:
        note_detached(self.grad_fn, self.output_nr)
    self.grad_fn, self.output_nr, self._requires_grad = None, 0, False
    if mode.tracing and (level := mode.dual_level.get()) is not None:
        level.set(self, None)
    return self


def _set_data(self: TensorBase, value: Any) -> None:
    """Take over the memory of another tensor or array; history and gradient stay."""
    trace = mode.current_trace()
    if trace is not None:
        traced = isinstance(value, TensorBase) and not isinstance(value.payload, np.ndarray)
        if traced and trace.payload(value) is trace.payload(self):  # the alias that `x.data -= y` has written to
            return
        trace.refuse_data(self)
    if not isinstance(value, (TensorBase, np.ndarray)):
        raise ArgumentError(f"Variable data has to be a tensor, but got {type(value).__name__}")
    array = value.payload if isinstance(value, TensorBase) else to_array(value, copy=False)
    if self.requires_grad and array.dtype.kind != "f":
        raise DTypeError(
            f"data set to a tensor that requires gradients must be floating point or complex dtype, got {array.dtype}"
        )
    if array is not self.payload:
        leave_family(self)
        if isinstance(self.payload, np.ndarray):
            share_count(array, self.payload)
        self.payload = array


def kept(name: str) -> Any:
    """The deleter of an attribute that every tensor has."""

    def refuse(self: TensorBase) -> None:
        raise GradientError(f"Deleting tensor.{name} is not allowed; `x.grad = None` forgets a gradient")

    return refuse


def _set_requires_grad(self: TensorBase, value: bool) -> None:
    requires_grad_(self, value)


def _volatile(self: TensorBase) -> bool:
    """False, with a warning: PyTorch's switch of long ago."""
    warn_user("volatile was removed (Variable.volatile is always False)")
    return False


def _set_volatile(self: TensorBase, value: Any) -> None:
    warn_user("volatile was removed and now has no effect. Use `with no_grad():` instead.")


METHODS: dict[str, Any] = {
    "volatile": property(_volatile, _set_volatile),
    "is_inference": inference.is_inference,
    "detach": detach,
    "detach_": detach_,
    "requires_grad_": requires_grad_,
    # reading the flag costs no more than a slot
    "requires_grad": property(TensorBase.__dict__["_requires_grad"].__get__, _set_requires_grad, kept("requires_grad")),
    "data": property(detach, _set_data, kept("data")),
    "_grad_fn": property(lambda self: self.grad_fn, None, kept("_grad_fn"), doc="`grad_fn`."),
}
