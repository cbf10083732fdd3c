"""The steps of a loop that a profile records: `torch.profiler.schedule`."""

from __future__ import annotations

import enum
from collections.abc import Callable

from common.core.errors import ArgumentError


class ProfilerAction(enum.Enum):
    """The action of a profile in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3

    @property
    def records(self) -> bool:
        """Whether events are kept."""
        return self.value >= ProfilerAction.RECORD.value


Schedule = Callable[[int], ProfilerAction]


def schedule(*, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0) -> Schedule:
    """Plan a profile's steps: cycles of steps that it skips, that only run, and that it records.

    Parameters
    ----------
    wait, warmup, active : steps of each kind in a cycle; those of the first two are not recorded.
    repeat : number of cycles; 0 for as many as there are.
    skip_first : steps before the first cycle.

    Raises
    ------
    ArgumentError : a negative number, or nothing active.

    Examples
    --------
    >>> plan = schedule(wait=1, warmup=1, active=2, repeat=1)
    >>> [plan(step).name for step in range(5)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active < 1:
        raise ArgumentError(
            "schedule(): expected wait, warmup, repeat and skip_first >= 0 and active >= 1, got "
            f"{wait}, {warmup}, {repeat}, {skip_first} and {active}"
        )
    cycle = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        number, place = divmod(step - skip_first, cycle)
        if step < skip_first or (repeat and number >= repeat) or place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if place == cycle - 1 else ProfilerAction.RECORD

    return action
