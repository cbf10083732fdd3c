"""Kernels that begin with a form for certain sizes: each form is a text of its own, and compiled when it runs.

::

    if n2 == 5:
        ...
        return 0
    ...
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

_GUARD = r"^    if (n\d+ == \d+(?: and n\d+ == \d+)*):\n"
_GUARDED = re.compile(_GUARD + r"((?:        .*\n)+?)        return 0\n", re.MULTILINE)
_SIZE = re.compile(r"n(\d+) == (\d+)")


class GuardedForms(NamedTuple):
    """The forms of a kernel as texts.

    Attributes
    ----------
    guard : the arguments of the kernel that the first form is for: number of the argument, and its value.
    special, general : the form for these, and that for all others.
    """

    guard: tuple[tuple[int, int], ...]
    special: str
    general: str


@lru_cache(maxsize=4096)
def guarded_forms(source: str) -> GuardedForms | None:
    """The forms of a kernel that begins with one for certain sizes; None of others."""
    found = _GUARDED.search(source)
    if found is None:
        return None
    head, rest = source[: found.start()], source[found.end() :]
    guard = tuple((int(argument), int(value)) for argument, value in _SIZE.findall(found[1]))
    return GuardedForms(guard, f"{head}{re.sub('^    ', '', found[2], flags=re.MULTILINE)}    return 0\n", head + rest)


__all__ = ["GuardedForms", "guarded_forms"]
