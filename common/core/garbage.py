"""Python's cyclic collector, for the time of a block."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident

from common.core.locks import after_fork, make_lock

_lock = make_lock()
_resting: dict[object, int] = {}
"""Blocks without the collector, and the threads they are in."""
_wanted = True


@contextmanager
def collecting_later() -> Iterator[None]:
    """Without the collector: what a trace or a compilation makes lives until its end, and would be visited in vain.

    Blocks may overlap in several threads; the last to end gives the collector back the state that the first one found.
    """
    global _wanted
    block = object()
    with _lock:
        _wanted = _wanted if _resting else gc.isenabled()
        _resting[block] = get_ident()
        gc.disable()
    try:
        yield
    finally:
        with _lock:
            _end(block)


def _end(*blocks: object) -> None:
    for block in blocks:
        del _resting[block]
    if _wanted and not _resting:
        gc.enable()


def _forget_other_threads() -> None:
    others = [block for block, thread in _resting.items() if thread != get_ident()]
    if others:
        _end(*others)


after_fork(_forget_other_threads)


@contextmanager
def collecting_now() -> Iterator[None]:
    """With the collector, inside a block without it: most of what a search makes is thrown away at once."""
    with _lock:
        wanted = _wanted if _resting else gc.isenabled()
        gc.enable()
    try:
        yield
    finally:
        with _lock:
            if _resting or not wanted:
                gc.disable()
