"""PyTorch's checks of conditions that a program relies on: ``torch._check(n > 0, lambda: f"n is {n}")``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from common.core.errors import ArgumentError, DTypeError, IndexRangeError, NotDefinedError, StateError
from common.tensor.base import TensorBase


def _checking(name: str, error: type[Exception], kind: str) -> Callable[..., None]:
    def check(cond: Any, message: Any = None) -> None:
        if isinstance(cond, TensorBase):
            raise ArgumentError(f"{name}(): cond must be a bool, but got Tensor: give bool(cond), or call _assert")
        if not cond:
            raise error(str(message() if callable(message) else message or "Expected cond to be True, but got False."))

    check.__name__ = check.__qualname__ = name
    check.__doc__ = f"""Raise {kind} unless a condition holds.

    Parameters
    ----------
    cond : bool.
    message : a function that gives the text of the error.
    """
    return check


_check = _checking("_check", StateError, "a RuntimeError")
_check_index = _checking("_check_index", IndexRangeError, "an IndexError")
_check_value = _checking("_check_value", ArgumentError, "a ValueError")
_check_type = _checking("_check_type", DTypeError, "a TypeError")
_check_not_implemented = _checking("_check_not_implemented", NotDefinedError, "a NotImplementedError")


def _check_is_size(i: Any, message: Any = None, *, max: Any = None) -> None:
    """Raise a RuntimeError unless a number is a size: not negative, and at most `max`."""
    _check(i >= 0 and (max is None or i <= max), message)
