"""Compiled functions forget which of their programs a call takes when the default dtype changes."""

from __future__ import annotations

from typing import Any

from common.core.dtypes import default_changed
from common.core.weak import Alive

_made: Alive[Any] = Alive()


def forgets(function: Any) -> None:
    """Let a compiled function be one of them; it is kept no longer for that."""
    _made.add(function)


def _forget() -> None:
    for function in _made:
        function._last = None
        for known in (function._by_call, function._by_signature, function._after):
            known.clear()


default_changed.append(_forget)
