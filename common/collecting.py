"""Python's cyclic collector, for the time of a block."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

_lock = Lock()
_resting = 0
_wanted = True


@contextmanager
def collecting_later() -> Iterator[None]:
    """Without the collector: what a trace or a compilation makes lives until its end, and would be visited in vain.

    Blocks may overlap in several threads; the last to end gives the collector back the state that the first one found.
    """
    global _resting, _wanted
    with _lock:
        _wanted = _wanted if _resting else gc.isenabled()
        _resting += 1
        gc.disable()
    try:
        yield
    finally:
        with _lock:
            _resting -= 1
            if _wanted and not _resting:
                gc.enable()


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
