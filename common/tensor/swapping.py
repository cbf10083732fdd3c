"""Two tensors exchange payload, place in the tape and attributes."""

from __future__ import annotations

from typing import Any

from common.core.errors import ArgumentError
from common.tensor.base import TensorBase


def swap_tensors(t1: Any, t2: Any) -> None:
    """Exchange memory, history, gradients and attributes of two tensors; every name of one is now one of the other.

    Parameters
    ----------
    t1, t2 : tensors of the same class.

    Raises
    ------
    ArgumentError : something else.
    """
    if not (isinstance(t1, TensorBase) and isinstance(t2, TensorBase)) or type(t1) is not type(t2):
        raise ArgumentError(f"swap_tensors(): two tensors of one class are needed, not {type(t1).__name__} and "
                            f"{type(t2).__name__}")  # fmt: skip
    slots = [name for kind in type(t1).__mro__ for name in getattr(kind, "__slots__", ()) if name != "__weakref__"]
    for name in slots:
        ours, theirs = (getattr(t, name, slots) for t in (t1, t2))  # `slots`: not set
        for tensor, value in ((t1, theirs), (t2, ours)):
            if value is slots:
                if hasattr(tensor, name):
                    delattr(tensor, name)
            else:
                setattr(tensor, name, value)
    if hasattr(t1, "__dict__"):
        ours, theirs = dict(vars(t1)), dict(vars(t2))
        for tensor, values in ((t1, theirs), (t2, ours)):
            vars(tensor).clear()
            vars(tensor).update(values)


__all__ = ["swap_tensors"]
