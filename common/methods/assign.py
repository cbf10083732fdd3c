"""Writing to tensors: new contents take the place of the old, with their history."""

from __future__ import annotations

from typing import Any

import numpy as np

from common.autograd.view_histories import ONE_VALUE, follow, overlap, rebind, repeats, require_writable, stands_alone
from common.core import mode
from common.core.errors import DTypeError, GradientError, ShapeError
from common.core.op import REGISTRY
from common.core.python_numbers import require_held
from common.core.sizes import same_shape
from common.core.source_lines import user_frame
from common.evaluate.kernels import filled
from common.evaluate.kinds import number
from common.tensor.base import TensorBase
from common.tensor.create import lift
from common.tensor.inference import refuse_write
from common.tensor.view_families import is_recorded, shows_writable
from common.tensor.write_log import is_shared, log_write, put


def assign(self: TensorBase, value: Any, name: str, part: Any = None) -> TensorBase:
    """Give a tensor new contents: the functional result, written to its memory, with its history.

    Parameters
    ----------
    part : ``part(array)`` is the view of the memory in which old and new contents differ; None for all of it.

    Raises
    ------
    GradientError : a leaf that requires grad, outside `no_grad`; or another tensor shows the same memory.
    ShapeError : the result does not have the tensor's shape.
    """
    if mode.inference_seen:
        refuse_write(self, name)
    recording, x, y = mode.is_grad_enabled(), self.payload, value.payload
    with_history = recording and (value._requires_grad or is_recorded(self))
    if not mode.tracing and part is None and not (with_history and not stands_alone(self)):
        if type(x) is np.ndarray is type(y) and x.shape == y.shape and x.dtype == y.dtype:
            _put(self, x, y, name in ONE_VALUE)
            log_write(x, *user_frame(2))
            if with_history:
                follow(self, value)
            return self
    if recording:
        require_unprotected(self, name)
    require_fitting(self, value, name)
    if value.dtype != self.dtype:
        value = value.to(self.dtype)
    if with_history:
        require_writable(self, name)
    if mode.current_trace() is None:
        target, source = (self.payload, value.payload) if part is None else (part(self.payload), part(value.payload))
        _put(self, target, source, name in ONE_VALUE)
        log_write(target, *user_frame(2))
    rebind(self, value, name, with_history)
    if mode.tracing and (level := mode.dual_level.get()) is not None:
        level.written(self, value)
    return self


def require_unprotected(x: TensorBase, name: str) -> None:
    """Refuse a recorded write to a leaf that requires grad."""
    if x.requires_grad and x.is_leaf:
        require_writable(x, name)  # a view says why it is none
        error = GradientError(
            f"a leaf Variable that requires grad is being used in an in-place operation ({name}_). Use no_grad() for "
            "an update of a parameter, or the functional form."
        )
        error.written = x
        raise error


def require_fitting(self: TensorBase, value: Any, name: str) -> None:
    """Refuse new contents of another shape, or of a dtype that is not cast to the tensor's.

    Raises
    ------
    ShapeError, DTypeError : they do not fit; no ints are cast to bools, nor floats to either.
    """
    if not same_shape(value.shape, self.shape) and tuple(value.shape) != tuple(self.shape):
        raise ShapeError(
            f"{name}_(): the result has shape {tuple(value.shape)}, which does not fit the tensor's {tuple(self.shape)}"
        )
    if (value.dtype.kind == "f") > (self.dtype.kind == "f") or (value.dtype.kind == "b") < (self.dtype.kind == "b"):
        raise DTypeError(f"{name}_(): result type {value.dtype} can't be cast to {self.dtype}")


def _set_now(self: TensorBase, other: TensorBase | None, value: Any, name: str) -> bool:
    """Write an array or number to memory where there is neither a history nor a trace; whether that was done."""
    if mode.tracing or type(x := self.payload) is not np.ndarray:
        return False
    if mode.is_grad_enabled() and (is_recorded(self) or (other is not None and other.requires_grad)):
        return False
    if mode.inference_seen:
        refuse_write(self, name)
    if other is not self:  # a tensor copied to itself is as it was
        _put(self, x, value)
    log_write(x, *user_frame(3))
    return True


def _put(x: TensorBase, target: np.ndarray, source: Any, one_value: bool = False) -> None:
    """`put` to the memory of a tensor: a part of what was expanded is locked by numpy, though it repeats nothing."""
    if filled(target, source):
        return
    try:
        put(target, source, one_value)
    except ValueError:
        if target.flags.writeable or target is not x.payload or is_shared(target) or not shows_writable(x):
            raise
        free = target[...]
        free.flags.writeable = True
        put(free, source, one_value)


def copy_(self: TensorBase, other: Any, non_blocking: bool = False) -> TensorBase:
    """Take over the elements of `other`, broadcast and cast; `non_blocking` is accepted."""
    if isinstance(other, TensorBase) and type(y := other.payload) is np.ndarray:
        if y.dtype == self.dtype and y.shape == self.shape and _set_now(self, other, y, "copy"):
            return self
    if other is self and not (mode.is_grad_enabled() and is_recorded(self)):
        return self
    source = other if isinstance(other, TensorBase) else lift(np.asarray(other))
    if source.dtype != self.dtype:
        source = source.to(self.dtype)
    if not same_shape(source.shape, self.shape) or (source.requires_grad and mode.is_grad_enabled()):
        from common.ops.shape.view import expand

        source = expand(source, self.shape)
    return assign(self, _after(self, source), "copy")


def _after(self: TensorBase, value: Any) -> Any:
    """`value` with the history of what it overwrites: what is recorded stays so, with zeros as its gradient."""
    if self.requires_grad and mode.is_grad_enabled() and value.dtype == self.dtype:
        return REGISTRY["overwrite"](self, value)
    return value


def zero_(self: TensorBase) -> TensorBase:
    """Set all elements to 0."""
    if _set_now(self, None, number(0, self.dtype), "zero"):
        return self
    return assign(self, _after(self, REGISTRY["zeros_like"](self.detach())), "zero")


def fill_(self: TensorBase, value: float) -> TensorBase:
    """Set all elements to a number."""
    given: Any = value
    if type(value) is float and self.dtype.kind == "f":
        rounded = number(value, self.dtype)
        if _set_now(self, None, rounded, "fill"):
            return self
        given = lift(rounded.copy())
    elif type(value) in (int, float):
        require_held("fill_", self.dtype, value)
    elif isinstance(value, (np.ndarray, np.generic)):
        given = lift(np.asarray(value))
    if getattr(value, "requires_grad", False) and repeats(self):
        raise overlap("fill")
    if isinstance(given, TensorBase) and given.ndim == 0:  # not added to zeros, which would make -0.0 another zero
        from common.ops.shape.view import expand

        source = expand(given.to(self.dtype), self.shape)
    else:
        source = (REGISTRY["zeros_like"](self.detach()) + given).to(self.dtype)
    return assign(self, _after(self, source), "fill")
