"""Context managers that several threads use: each leaves what it has entered."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from itertools import count
from typing import Any

from common.core.switching import Change, Switched, switching


def in_thread(body: Any) -> None:
    thread = threading.Thread(target=body)
    thread.start()
    thread.join()


def use(manager: Any) -> None:
    with manager:
        pass


class Interrupted(Switched):
    """Another thread enters and leaves it while this one prepares its exit."""

    others = True

    def _leave(self, last: Iterator[Any]) -> Iterator[Any]:
        if self.others:
            self.others = False
            in_thread(lambda: use(self))
        return super()._leave(last)


def test_a_manager_that_two_threads_enter_first_can_be_left():
    manager = Interrupted(lambda: Change((tuple,), (tuple,)))
    for _ in range(3):
        use(manager)


def test_calls_of_a_decorated_function_leave_what_they_entered():
    left: list[int] = []
    number, begun, go = count(), threading.Event(), threading.Event()

    @switching
    def counted() -> Change:
        return Change((tuple,), (partial(left.append, next(number)),))

    @counted()
    def call(late: bool) -> None:
        if late:
            begun.set()
            go.wait(10)
        else:
            other.start()
            begun.wait(10)

    other = threading.Thread(target=call, args=(True,))
    call(False)
    assert left == [0]
    go.set()
    other.join()
    assert left == [0, 1]
