"""Functions that a user's `backward` asks to be called once the pass that runs it is over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from common.autograd import nested_backward
from common.core.errors import GradientError

#: Callbacks, with the depth of the `backward` that asks for them; empty nearly always.
waiting: list[tuple[int, Callable[[], Any]]] = []


class ExecutionEngine:
    """PyTorch's ``Variable._execution_engine``."""

    @staticmethod
    def queue_callback(callback: Callable[[], Any]) -> None:
        """Call a function without arguments when the backward pass that is running has added to all gradients.

        Raises
        ------
        GradientError : none is running.
        """
        depth = nested_backward.depth()
        if not depth:
            raise GradientError("Final callbacks can only be installed during backward pass.")
        waiting.append((depth, callback))


def run_waiting() -> None:
    """After a pass: call what was asked for inside, and what these calls ask for."""
    inside = nested_backward.depth() + 1
    while due := [entry for entry in waiting if entry[0] >= inside]:
        waiting[:] = [entry for entry in waiting if entry[0] < inside]
        for _, callback in due:
            nested_backward.nested(callback)
