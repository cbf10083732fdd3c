"""PyTorch's switch of threads of backward passes."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

_enabled: ContextVar[bool] = ContextVar("twingrad_multithreading", default=True)


class set_multithreading_enabled:
    """Function and context manager: what `is_multithreading_enabled` says. It changes nothing else: a backward pass
    runs in the thread that calls it.

    Parameters
    ----------
    mode : what it says from now on; as a context manager until the block ends.
    """

    def __init__(self, mode: bool) -> None:
        self.prev = _enabled.get()
        _enabled.set(bool(mode))

    def __enter__(self) -> None:
        """Nothing: it has been said."""

    def __exit__(self, *raised: Any) -> None:
        """Say again what was said before."""
        _enabled.set(self.prev)


def is_multithreading_enabled() -> bool:
    """What `set_multithreading_enabled` was told last; True by default."""
    return _enabled.get()
