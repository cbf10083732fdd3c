"""Commands that draw random programs, one after the other."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence


def draw(check: Callable[[int], None], what: str, description: str | None, arguments: Sequence[str] | None) -> None:
    """Call ``check(seed)`` for one seed after the other until the time is over, and print how many there were.

    Parameters
    ----------
    what : what a seed makes, in the plural.
    arguments : of the command line, ``--seconds`` and ``--seed``.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=0, help="the first; the others follow it")
    options = parser.parse_args(arguments)
    seed, end = options.seed, time.monotonic() + options.seconds
    while time.monotonic() < end:
        check(seed)
        seed += 1
    print(f"{seed - options.seed} {what}, from seed {options.seed} on: no bit differs")
