"""`while` and `for` on tensors."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any, NamedTuple

from common.control.iterate import scan, while_loop
from common.convert.if_statements import branch
from common.convert.logic import and_, not_
from common.convert.name_states import (
    INTERNAL,
    UNSET,
    Lost,
    decides,
    full,
    is_data,
    learned,
    not_data,
    same_numbers,
    values,
    where_now,
    zeros,
)
from common.convert.written import Values, require_alone, run
from common.core.dtypes import int64
from common.tensor.base import TensorBase


class _LoopNames(NamedTuple):
    """The names that a loop's body sets, by what becomes of them.

    Attributes
    ----------
    carried : positions of those that are carried.
    start : their values before the loop.
    lost : positions of those that have no value before it.
    written : positions of tensors that it writes in place, and which keep their names.
    """

    carried: list[int]
    start: list[Any]
    lost: list[int]
    written: list[int]


def while_(
    test: Callable[..., Any], body: Callable[..., Values], names: Sequence[str], scope: Any, flag: str
) -> Values:
    """A `while`: the values of what it sets."""
    state = values(scope, names)
    ended = names.index(flag) if flag else -1
    while True:
        answer = _going_on(state, ended, partial(test, *state))
        if decides(answer):
            return _while_traced(test, body, names, state, ended, scope)
        if not answer:
            return state
        state = body(*state)


def _going_on(state: Values, ended: int, test: Callable[[], Any]) -> Any:
    """Whether a loop has not been left, and its test holds."""
    return test() if ended < 0 else and_(lambda: not_(state[ended]), test)


def _while_traced(
    test: Callable[..., Any], body: Callable[..., Values], names: Sequence[str], state: Values, ended: int, scope: Any
) -> Values:
    where = where_now()
    split = _split(body, names, state, scope, where)

    def asks(carried: Any) -> Any:
        x = _filled(state, split, carried)
        answer = _going_on(tuple(x), ended, lambda: test(*x))
        return answer if isinstance(answer, TensorBase) else bool(answer)

    @wraps(body)
    def step(carried: Any) -> Any:
        out = run(body, names, _filled(state, split, carried)).raw
        return [out[i] for i in split.carried]

    return _after(state, split, names, where, while_loop(asks, step, split.start))


class Range:
    """``range`` of tensors."""

    def __init__(self, *bounds: Any) -> None:
        whole: tuple[Any, ...] = {1: (0, *bounds, 1), 2: (*bounds, 1), 3: bounds}[len(bounds)]
        self.start, self.stop, self.step = whole

    def left(self, i: Any) -> Any:
        """Whether there is a number `i`."""
        up, down = i < self.stop, i > self.stop
        if isinstance(self.step, TensorBase):
            sign: Any = self.step
            return ((sign > 0) & up) | ((sign < 0) & down)
        return up if self.step > 0 else down


def range_(function: Any, *bounds: Any) -> Any:
    """``range(...)``."""
    if function is builtins.range and any(decides(x) for x in bounds) and 0 < len(bounds) <= 3:
        return Range(*bounds)
    return function(*bounds)


def for_(rows: Any, body: Callable[..., Values], names: Sequence[str], scope: Any, flag: str) -> Values:
    """A `for`: the values of what it sets."""
    state = values(scope, names)
    ended = names.index(flag) if flag else -1
    if isinstance(rows, Range):
        return _for_range(rows, body, names, state, ended, scope)
    if isinstance(rows, TensorBase) and rows.ndim:
        return _for_rows(rows, body, names, state, ended, scope)
    where = where_now()
    for x in rows:
        if ended >= 0 and decides(state[ended]):  # a tensor has decided whether the loop goes on
            state = branch(state[ended], _same, _at(body, x), names, state, scope, where)
            continue
        state = body(x, *state)
        if ended >= 0 and not decides(state[ended]) and state[ended]:
            break
    return state


def _same(*state: Any) -> Values:
    return state


def _at(body: Callable[..., Values], x: Any) -> Callable[..., Values]:
    """The body of a `for` at one element."""
    return wraps(body)(partial(body, x))


def _for_range(
    rows: Range, body: Callable[..., Values], names: Sequence[str], state: Values, ended: int, scope: Any
) -> Values:
    where = where_now()
    first = full((), int64) + rows.start
    split = _split(_at(body, first), names, state, scope, where)

    def going(carried: Any) -> Any:
        i, rest = carried[0], _filled(state, split, carried[1:])
        return _going_on(tuple(rest), ended, partial(rows.left, i))

    @wraps(body)
    def step(carried: Any) -> Any:
        out = run(_at(body, carried[0]), names, _filled(state, split, carried[1:])).raw
        return [carried[0] + rows.step, *(out[i] for i in split.carried)]

    return _after(state, split, names, where, while_loop(going, step, [first, *split.start])[1:])


def _for_rows(
    rows: TensorBase, body: Callable[..., Values], names: Sequence[str], state: Values, ended: int, scope: Any
) -> Values:
    if ended >= 0:
        count = full((), int64) + rows.shape[0]
        by_number = wraps(body)(lambda i, *x: body(rows[i], *x))
        return _for_range(Range(0, count), by_number, names, state, ended, scope)
    where = where_now()
    row = full(tuple(rows.shape[1:]), rows.dtype)
    split = _split(_at(body, row), names, state, scope, where)

    @wraps(body)
    def step(carried: Any, x: Any) -> Any:
        out = run(_at(body, x), names, _filled(state, split, carried)).raw
        return [out[i] for i in split.carried], None

    return _after(state, split, names, where, scan(step, split.start, rows)[0])


def _split(
    body: Callable[..., Values], names: Sequence[str], state: Values, scope: dict[str, Any], where: str
) -> _LoopNames:
    """Divide the names that a loop sets: an iteration changes the carried ones, once all others are tensors."""
    known: set[int] = set()
    while True:
        split = _LoopNames([], [], [], [])
        given, ran, writes = learned(body, names, state, known)
        for i, (before, after) in enumerate(zip(given, ran.out, strict=True)):
            start = state[i]
            if before is after and i not in writes:
                continue
            if before is after and isinstance(start, TensorBase):
                split.written.append(i)
            if start is UNSET and names[i].startswith(INTERNAL) and is_data(after):
                start = zeros(after)
            elif start is UNSET or isinstance(start, Lost):
                split.lost.append(i)
                continue
            if i not in known and same_numbers(before, after):
                continue
            for x in (start, after):
                if not is_data(x):
                    raise not_data(where, names[i], x)
            split.carried.append(i)
            split.start.append(start)
        if known.issuperset(split.carried):
            require_alone([names[i] for i in writes if isinstance(state[i], TensorBase)], (body,), scope, where)
            return split
        known.update(split.carried)


def _filled(state: Values, split: _LoopNames, carried: Sequence[Any]) -> list[Any]:
    full = list(state)
    for i, x in zip(split.carried, carried, strict=True):
        full[i] = x
    return full


def _after(state: Values, split: _LoopNames, names: Sequence[str], where: str, carried: Sequence[Any]) -> Values:
    full = _filled(state, split, carried)
    for i in split.written:
        full[i] = state[i].copy_(full[i])
    for i in split.lost:
        full[i] = Lost(names[i], where)
    return tuple(full)
