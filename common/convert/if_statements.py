"""`if` on a tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any, cast

from common.control.choose import cond
from common.convert.name_states import (
    INTERNAL,
    UNSET,
    Lost,
    Values,
    decides,
    is_data,
    learned,
    not_data,
    same_numbers,
    values,
    where_now,
    zeros,
)


def if_(test: Any, one: Callable[..., Values], two: Callable[..., Values], names: Sequence[str], scope: Any) -> Values:
    """An `if`: the values of what it sets."""
    given = values(scope, names)
    if not decides(test):
        return one(*given) if test else two(*given)
    return branch(test, one, two, names, given, where_now())


def branch(
    test: Any, one: Callable[..., Values], two: Callable[..., Values], names: Sequence[str], given: Values, where: str
) -> Values:
    """The values that one of two functions gives, a tensor decides which; what both leave alone is left alone."""
    first, second = (learned(part, given)[1] for part in (one, two))
    results: list[Any] = [None] * len(names)
    asked: dict[int, Any] = {}
    a: Any
    b: Any
    for i, (a, b) in enumerate(zip(first, second, strict=True)):
        if a is b:
            results[i] = a
        elif (a is UNSET or b is UNSET) and names[i].startswith(INTERNAL) and is_data(b if a is UNSET else a):
            asked[i] = b if a is UNSET else a
        elif any(x is UNSET or isinstance(x, Lost) for x in (a, b)):
            results[i] = Lost(names[i], where)
        elif is_data(a) and is_data(b):
            if same_numbers(a, b):
                results[i] = a
            else:
                asked[i] = a
        else:
            raise not_data(where, names[i], a if not is_data(a) else b)

    def picked(part: Callable[..., Values]) -> list[Any]:
        out = part(*given)
        return [zeros(like) if out[i] is UNSET else out[i] for i, like in asked.items()]

    if asked:
        functions = [wraps(part)(partial(picked, part)) for part in (one, two)]
        for i, x in zip(asked, cond(test, *functions), strict=True):
            results[i] = x
    return tuple(results)


def if_return(test: Any, one: Callable[..., Any], two: Callable[..., Any], names: Sequence[str], scope: Any) -> Any:
    """An `if` with which a function ends: what it returns."""
    given = values(scope, names)
    if not decides(test):
        return one(*given) if test else two(*given)
    first, second = (cast(Any, learned(part, given)[1]) for part in (one, two))
    if first is None and second is None:
        return None
    for x in (first, second):
        if not is_data(x):
            raise not_data(where_now(), "the result", x)
    return cond(test, *(wraps(part)(partial(part, *given)) for part in (one, two)))
