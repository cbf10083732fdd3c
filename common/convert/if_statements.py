"""`if` on a tensor."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial, wraps
from typing import Any

from common.control.choose import cond
from common.convert.name_states import (
    INTERNAL,
    UNSET,
    Lost,
    decides,
    is_data,
    learned,
    not_data,
    same_numbers,
    values,
    where_now,
    zeros,
)
from common.convert.written import Values, require_alone, run


def if_(test: Any, one: Callable[..., Values], two: Callable[..., Values], names: Sequence[str], scope: Any) -> Values:
    """An `if`: the values of what it sets."""
    given = values(scope, names)
    if not decides(test):
        return one(*given) if test else two(*given)
    return branch(test, one, two, names, given, scope, where_now())


def branch(
    test: Any,
    one: Callable[..., Values],
    two: Callable[..., Values],
    names: Sequence[str],
    given: Values,
    scope: Any,
    where: str,
) -> Values:
    """The values that one of two functions gives, a tensor decides which; what both leave alone is left alone."""
    first, second = (learned(part, names, given) for part in (one, two))
    results: list[Any] = [None] * len(names)
    asked: dict[int, Any] = {}
    a: Any
    b: Any
    for i, (a, b) in enumerate(zip(first.ran.out, second.ran.out, strict=True)):
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

    def picked(out: Values) -> list[Any]:
        return [zeros(like) if out[i] is UNSET else out[i] for i, like in asked.items()]

    writes = {*first.writes, *second.writes}
    if asked or writes:
        require_alone([names[i] for i in writes], (one, two), scope, where)
        for i, x in zip(asked, _chosen(test, one, two, names, given, writes, picked), strict=True):
            results[i] = x
    return tuple(results)


def _chosen(
    test: Any,
    one: Callable[..., Any],
    two: Callable[..., Any],
    names: Sequence[str],
    given: Values,
    writes: Collection[int],
    picked: Callable[[Any], Any],
) -> Any:
    """What is picked of the result of one of two blocks; tensors are written as it has written its copies."""

    def chosen(block: Callable[..., Any]) -> Any:
        ran = run(block, names, given)
        return picked(ran.raw), [ran.copies.get(i, given[i]) for i in writes]

    result, states = cond(test, *(wraps(block)(partial(chosen, block)) for block in (one, two)))
    for i, state in zip(writes, states, strict=True):
        given[i].copy_(state)
    return result


def if_return(test: Any, one: Callable[..., Any], two: Callable[..., Any], names: Sequence[str], scope: Any) -> Any:
    """An `if` with which a function ends: what it returns."""
    given = values(scope, names)
    if not decides(test):
        return one(*given) if test else two(*given)
    first, second = (learned(part, names, given) for part in (one, two))
    writes = {*first.writes, *second.writes}
    if first.ran.raw is None and second.ran.raw is None and not writes:
        return None
    for x in (first.ran.raw, second.ran.raw):
        if not is_data(x):
            raise not_data(where_now(), "the result", x)
    require_alone([names[i] for i in writes], (one, two), scope, where_now())
    return _chosen(test, one, two, names, given, writes, lambda out: out)
