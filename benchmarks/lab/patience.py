"""A call of a user's program that does not end: its line is told, and after a limit the call is ended."""

from __future__ import annotations

import dataclasses
import functools
import linecache
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from benchmarks.bootstrap import ROOT
from benchmarks.lab import failures, interrupt
from benchmarks.lab.libraries import package
from benchmarks.lab.progress import duration
from benchmarks.workload import Array, Inputs, Program, Workload
from common.core.errors import TwingradError

LIMIT = 300.0
"""Seconds after which a call is ended, unless ``--limit`` says otherwise."""
FIRST = 10.0
"""Seconds after which the line is told for the first time; then after twice as long, and so on."""
GRACE = 0.5
"""Seconds after the limit in which Python's code can end by itself. Then Ctrl-C is sent, which compiled loops hear."""

_COMPILED = str(ROOT / "static") + os.sep

Call = Callable[..., Any]


class TookTooLong(TwingradError, TimeoutError):
    """One call of a program takes longer than ``--limit``."""


class Patience:
    """Watches calls, of which each may take some time. Does nothing without alarms: on Windows, beside the main thread.

    A loop that is compiled hears Ctrl-C only, so its line is not told; the system presses after the limit, on Linux.

    Parameters
    ----------
    say : callable
        Told the line at which a call is, after `first` seconds and ever more rarely.
    limit : float
        Seconds that a call may take.
    first : float
        Seconds.
    """

    def __init__(self, say: Callable[[str], None], limit: float = LIMIT, first: float = FIRST) -> None:
        self.say, self.limit, self.first = say, limit, first

    def of(self, workload: Workload) -> Workload:
        """Return the same workload, whose calls are watched."""
        return _Watched(workload, self)

    def call(self, function: Call, about: str) -> Call:
        """Return a function that is watched.

        Parameters
        ----------
        function : callable
        about : str
            What it is, for messages.

        Raises
        ------
        TookTooLong
            By the function that is returned, after `limit` seconds.
        """
        if not hasattr(signal, "setitimer"):
            return function

        @functools.wraps(function)
        def watched(*arguments: Any) -> Any:
            if threading.current_thread() is not threading.main_thread():
                return function(*arguments)
            start, places = time.monotonic(), list[str]()

            def pressed(number: int, frame: FrameType | None) -> None:
                if time.monotonic() - start >= self.limit + GRACE:
                    self._late(start, about, frame, places)
                elif callable(earlier):
                    earlier(number, frame)

            before = signal.signal(signal.SIGALRM, lambda _, frame: self._late(start, about, frame, places))
            earlier = signal.signal(signal.SIGINT, pressed)
            self._wait(0.0)
            try:
                with interrupt.after(self.limit + GRACE):
                    return function(*arguments)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, before)
                signal.signal(signal.SIGINT, signal.SIG_DFL if earlier is None else earlier)

        return watched

    def _wait(self, passed: float) -> None:
        """Be called again when the line is to be told next, or at the limit."""
        after = min(max(self.first, 2 * passed), self.limit) - passed
        signal.setitimer(signal.ITIMER_REAL, max(after, 1e-3), 1.0)  # again: what a finaliser raises is lost

    def _late(self, start: float, about: str, frame: FrameType | None, places: list[str]) -> None:
        passed = time.monotonic() - start
        where = line(frame)
        if passed >= self.limit:
            places.append(where)  # the first is where the call was; later ones, where its end was being told
            raise TookTooLong(
                f"one call of {about} takes longer than {self.limit:g} s; it was at {places[0]}. If a loop ends "
                "there, allow more: --limit SECONDS; if not, its condition never turns false"
            )
        self.say(f"{about}: one call has taken {duration(passed)}, now at {where}; "
                 f"it is ended after {self.limit:g} s (--limit)")  # fmt: skip
        self._wait(passed)


class _Watched(Workload):
    """A workload whose programs' calls are watched."""

    def __init__(self, workload: Workload, patience: Patience) -> None:
        self.workload, self.patience = workload, patience
        self.name, self.outputs = workload.name, workload.outputs

    @property
    def key(self) -> str:
        return self.workload.key

    def inputs(self) -> list[Inputs]:
        return self.workload.inputs()

    def make(self, tw: ModuleType) -> Program:
        program = self.workload.make(tw)
        call = self.patience.call(program.call, f"{self.name} in {package(tw)}")
        return dataclasses.replace(program, call=call)

    def results(self, returned: Any) -> dict[str, Array]:
        return self.workload.results(returned)


def line(frame: FrameType | None) -> str:
    """Return the innermost line of the user's at which a frame is, or where it is else."""
    inner = frame
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(failures.FOREIGN):
            text = linecache.getline(name, frame.f_lineno).strip()
            return f"{Path(name).name}:{frame.f_lineno}: {text}"
        frame = frame.f_back
    if inner is None or inner.f_code.co_filename.startswith(_COMPILED):
        return "compiled code"
    return f"{inner.f_code.co_name} of the library"


def on_stderr(text: str) -> None:
    """Print a line."""
    print(text, file=sys.stderr, flush=True)
