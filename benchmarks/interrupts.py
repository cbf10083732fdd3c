"""Ctrl-C during a run: finished results are kept, and no press is lost."""

import _thread
import signal
import sys
import threading
from collections.abc import Iterable
from typing import Any

EXIT_CODE = 130
"""Of a command that Ctrl-C has ended: 128 and the number of the signal."""

_AGAIN_SECONDS = 0.02


def collect(results: list[Any], found: Iterable[Any]) -> bool:
    """Put results into a list as they come; False if Ctrl-C ended that. Later presses are ignored: the end is near."""
    heard = threading.Event()
    _hear(heard)
    try:
        results.extend(found)
        return True
    except KeyboardInterrupt:
        return False
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        heard.set()


def _hear(heard: threading.Event) -> None:
    """Have Ctrl-C raise until it is heard.

    What it raises in a finaliser, or in a callback of the garbage collector, the interpreter throws away; so it is
    raised again. A shell's background jobs are born deaf to the signal; they hear it, too.
    """
    before, pressed = sys.unraisablehook, False

    def again() -> None:
        while not heard.wait(_AGAIN_SECONDS):
            _thread.interrupt_main()

    def press(*_: Any) -> None:
        nonlocal pressed
        if not pressed:
            pressed = True
            threading.Thread(target=again, daemon=True).start()
        raise KeyboardInterrupt

    def hook(lost: Any) -> None:
        if lost.exc_type is None or not issubclass(lost.exc_type, KeyboardInterrupt):
            before(lost)

    sys.unraisablehook = hook
    signal.signal(signal.SIGINT, press)
