"""Python's cyclic collector, for the time of a block."""

from __future__ import annotations

import gc
from functools import partial
from operator import not_
from threading import get_ident

from common.core.locks import after_fork
from common.core.switching import Change, switching, when

_resting: dict[object, int] = {}
"""Blocks without the collector, and the threads they are in."""
_wanted = True


@switching
def collecting_later() -> Change:
    """Without the collector: what a trace or a compilation makes lives until its end, and would be visited in vain.

    Blocks may overlap in several threads; the last to end gives the collector back the state that the first one found.
    """
    return _without()


def _without() -> Change:
    block, wanted = object(), _wanted if _resting else gc.isenabled()
    on = (
        partial(globals().__setitem__, "_wanted", wanted),
        partial(_resting.__setitem__, block, get_ident()),
        gc.disable,
    )
    return Change(on, (partial(_resting.pop, block, None), when(gc.enable, partial(bool, wanted), _nobody_rests)))


@switching
def loading() -> Change:
    """Without the collector, and what there is at the end is old: modules live as long as the process.

    Objects pass from one generation to the next by a walk through all of them, but into a frozen one and out of it in
    one step. Where the program has frozen objects of its own, nothing is moved.
    """
    on, off, _ = _without()
    return Change(on, off if gc.get_freeze_count() else (gc.freeze, gc.unfreeze, *off))


_nobody_rests = partial(not_, _resting)


def _forget_other_threads() -> None:
    for block in [block for block, thread in _resting.items() if thread != get_ident()]:
        del _resting[block]
        if _wanted and not _resting:
            gc.enable()


after_fork(_forget_other_threads)


@switching
def collecting_now() -> Change:
    """With the collector, inside a block without it: most of what a search makes is thrown away at once."""
    wanted = _wanted if _resting else gc.isenabled()
    rests = () if not wanted else (partial(bool, _resting),)
    return Change((gc.enable,), (when(gc.disable, *rests),))
