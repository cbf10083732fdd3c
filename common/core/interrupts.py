"""Ctrl-C during work whose interruption would be lost."""

from __future__ import annotations

import sys
import threading
from types import FrameType
from typing import Any


class heard_later:
    """Context manager: a Ctrl-C that arrives in the block is heard at its end; in the main thread.

    For blocks that free objects of other libraries with finalisers in Python: what a signal's handler raises in one of
    these is printed and lost. Such blocks have to be short.
    """

    __slots__ = ("_before", "_heard")

    def __enter__(self) -> None:
        import signal

        self._heard, self._before = False, None
        if threading.current_thread() is threading.main_thread():
            before: Any = signal.getsignal(signal.SIGINT)
            if callable(before):  # else it is ignored, or ends the process, or is not Python's
                self._before = before
                signal.signal(signal.SIGINT, self._hear)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self._heard = True

    def __exit__(self, *raised: object) -> None:
        import signal

        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            if self._heard:
                self._before(signal.SIGINT, sys._getframe(1))
