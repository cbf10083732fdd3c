"""The version of the distribution, read by the build backend and written into every report; and of what it is like."""

from __future__ import annotations

import re
from typing import Any

__version__ = "0.1.0"


class TorchVersion(str):
    """A version that is compared by its numbers, as PyTorch's is: with texts, and with tuples of numbers.

    >>> TorchVersion("2.13.0+cpu") >= "2.4", TorchVersion("2.13.0+cpu") < (2, 4), TorchVersion("1.10.0a0") < "1.10"
    (True, False, True)
    """

    __slots__ = ()

    def _order(self, other: Any) -> int:
        """Less than 0 below another version, 0 for an equal one, more above it."""
        mine, theirs = (_key(str(x) if isinstance(x, str) else ".".join(map(str, x))) for x in (self, other))
        return (mine > theirs) - (mine < theirs)

    def __lt__(self, other: Any) -> bool:
        return self._order(other) < 0

    def __le__(self, other: Any) -> bool:
        return self._order(other) <= 0

    def __gt__(self, other: Any) -> bool:
        return self._order(other) > 0

    def __ge__(self, other: Any) -> bool:
        return self._order(other) >= 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (str, tuple, list)) and self._order(other) == 0

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


def _key(version: str) -> tuple[list[int], bool, str]:
    """What versions are ordered by: the release without zeros at its end, whether it is final, what it is called."""
    public, _, local = version.partition("+")
    found = re.match(r"v?(\d+(?:\.\d+)*)(.*)", public)
    numbers, rest = found.groups() if found else ("", public)
    release = [int(n) for n in numbers.split(".") if n]
    while release and release[-1] == 0:
        release.pop()
    return release, not rest or rest.startswith((".post", "post")), rest + local


#: The version of an engine: that of PyTorch whose names and meanings it has, by which programs decide how to
#: call something, and after the plus sign, where a build says what it is (PEP 440), our own.
like_pytorch = TorchVersion(f"2.13.0+twingrad.{__version__}")
