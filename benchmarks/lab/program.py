"""`program`: the decorator with which a file says how one of its functions is to be measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
MARK = "__twingrad_program__"


def program(arguments: str = "", *, grad: bool = False, sweep: str = "", **sizes: int) -> Callable[[F], F]:
    """Say on what a function is to be measured; without the command, the function is what it was.

    Parameters
    ----------
    arguments : str
        As ``--args`` takes them, such as ``"f32[n,128], i64[n]<10"``.
    grad : bool
        Measure value and gradient.
    sweep : str
        As ``--sweep`` takes it, such as ``"n=10,100,1000"``.
    **sizes : int
        Numbers of the sizes with names.

    Examples
    --------
    >>> @program("f32[n,n]", n=8)
    ... def trace(x):
    ...     return (x @ x).sum()
    """

    def mark(function: F) -> F:
        setattr(function, MARK, {"arguments": arguments, "grad": grad, "sweep": sweep, "sizes": sizes})
        return function

    return mark
