"""Marks of `torch.fx`, which libraries put on their functions: no symbolic trace reads them here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from common.core.errors import ArgumentError

__all__ = ["wrap"]


def wrap(fn_or_name: Callable[..., Any] | str) -> Any:
    """A function, or the name of one, as it is: in PyTorch a mark for symbolic traces, which there are none of here.

    Parameters
    ----------
    fn_or_name : function, or its name in the module that calls.

    Returns
    -------
    callable or str
        What was given; so it decorates functions.

    Raises
    ------
    ArgumentError : it is neither.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise ArgumentError(f"fx.wrap(): a function or its name is needed, not {type(fn_or_name).__name__}")
    return fn_or_name
