"""`not`, `and`, `or`, chains of comparisons and conditional expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from common.control.choose import cond
from common.convert.name_states import decides
from common.core.dtypes import bool_
from common.tensor.base import TensorBase


def not_(x: Any) -> Any:
    """``not x``."""
    return _truth(x) == False if decides(x) else not x  # noqa: E712


def _truth(x: Any) -> Any:
    return x if x.dtype == bool_ else x != 0


def _both(a: Any, b: Callable[[], Any], wanted: bool) -> Any:
    """``a and b()`` if `wanted`, else ``a or b()``, where `a` is a tensor: a truth value."""

    def other() -> Any:
        y = b()
        return _truth(y) if isinstance(y, TensorBase) else bool(y)

    def same() -> Any:
        return not wanted

    return cond(a, other, same) if wanted else cond(a, same, other)


def _joined(parts: Sequence[Callable[[], Any]], wanted: bool) -> Any:
    x = parts[0]()
    for i, part in enumerate(parts[1:]):
        if decides(x):
            rest = parts[i + 1 :]
            return _both(x, lambda rest=rest: _joined(rest, wanted), wanted)  # type: ignore[misc]
        if bool(x) is not wanted:
            return x
        x = part()
    return x


def and_(*parts: Callable[[], Any]) -> Any:
    """``a and b``; of tensors the truth of it."""
    return _joined(parts, True)


def or_(*parts: Callable[[], Any]) -> Any:
    """``a or b``; of tensors the truth of it."""
    return _joined(parts, False)


def chain(parts: Sequence[Callable[[], Any]], pairs: Sequence[Callable[[Any, Any], Any]]) -> Any:
    """``a < b < c``: each operand once, and none behind a comparison that fails."""
    found = [parts[0]()]

    def step(i: int) -> Callable[[], Any]:
        def compare() -> Any:
            found[i + 1 :] = [parts[i + 1]()]
            return pairs[i](found[i], found[i + 1])

        return compare

    return _joined([step(i) for i in range(len(pairs))], True)


def if_expression(test: Any, one: Callable[[], Any], two: Callable[[], Any]) -> Any:
    """``one() if test else two()``."""
    return cond(test, one, two) if decides(test) else one() if test else two()
