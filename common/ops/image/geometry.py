"""Arguments of functions of images: a number per dimension, batches of one, and how many windows there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from common.core.errors import ArgumentError, ShapeError
from common.core.int_arguments import integers
from common.ops.shape.view import reshape


def documented(n: int, text: str, size: int = 0) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a function of images of `n` dimensions its docstring, from a text for any number of them.

    Parameters
    ----------
    size : of the result of the example, along each dimension.
    """
    sizes = ", ".join(("depth", "height", "width")[3 - n :] if n > 1 else ("length",))
    kernel = ", ".join(("kd", "kh", "kw")[3 - n :] if n > 1 else ("k",))
    numbers = {"threes": ", 3" * n, "fives": ", 5" * n, "sixes": ", 6" * n, "results": f", {size}" * n}

    def document(function: Callable[..., Any]) -> Callable[..., Any]:
        function.__doc__ = text.format(n=n, s="s" if n > 1 else "", sizes=sizes, kernel=kernel, **numbers)
        return function

    return document


def per_dimension(value: Any, n: int, op: str, name: str) -> tuple[Any, ...]:
    """`n` ints; one stands for all.

    Raises
    ------
    ArgumentError : no ints, or another number of them.
    """
    given = integers(value, op, name)
    if len(given) == 1:
        return given * n
    if len(given) != n:
        raise ArgumentError(f"{op}(): {name} must be an int or a tuple of {n} ints, got {list(given)}")
    return given


def three(values: Sequence[Any], fill: Any) -> tuple[Any, ...]:
    """Values of one to three dimensions as those of three."""
    return (*(fill,) * (3 - len(values)), *values)


def images(x: Any) -> Any:
    """(n, c, ...) as (n, c, d, h, w)."""
    return x if x.ndim == 5 else reshape(x, (*x.shape[:2], *three(x.shape[2:], 1)))


def batched(x: Any, n: int, op: str) -> tuple[Any, bool]:
    """`x` with a batch dimension, and whether it had one.

    Raises
    ------
    ShapeError : neither (channels, ...) nor (batch, channels, ...) with `n` dimensions behind.
    """
    if x.ndim == n + 2:
        return x, True
    if x.ndim != n + 1:
        wanted = (f"non-empty {n + 1}D or {n + 2}D (batch mode) tensor expected for input of {op}" if "pool" in op else
                  f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {op}")  # fmt: skip
        raise ShapeError(f"{wanted}, but got input of size: {list(x.shape)}")
    return reshape(x, (1, *x.shape)), False


def positive(values: Sequence[Any], op: str, name: str) -> None:
    """Refuse numbers below 1.

    Raises
    ------
    ArgumentError : one of them is below 1.
    """
    if any(v <= 0 for v in values):
        raise ArgumentError(f"{op}(): {name} should be greater than zero, but got {list(values)}")


def window_count(n: Any, size: Any, stride: Any, padding: Any, dilation: Any, ceil: bool = False) -> Any:
    """How many windows there are along a dimension of `n`; with `ceil` one more may reach beyond its end."""
    room = n + 2 * padding - dilation * (size - 1) - 1
    if not ceil:
        return room // stride + 1
    count = (room + stride - 1) // stride + 1
    return count - 1 if (count - 1) * stride >= n + padding else count


__all__: list[str] = []
