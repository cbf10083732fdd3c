"""PyTorch's switch of threads of backward passes."""

from __future__ import annotations

from contextvars import ContextVar
from functools import partial

from common.core.switching import Change, Switching

_enabled: ContextVar[bool] = ContextVar("twingrad_multithreading", default=True)


class set_multithreading_enabled(Switching):
    """Function and context manager: what `is_multithreading_enabled` says. It changes nothing else: a backward pass
    runs in the thread that calls it.

    Parameters
    ----------
    mode : what it says from now on; as a context manager until the block ends.
    """

    def __init__(self, mode: bool) -> None:
        self._before = _enabled.get()
        self._is_on(*self._change().off)
        _enabled.set(bool(mode))

    def _change(self) -> Change:
        return Change((), (partial(_enabled.set, self._before),))


def is_multithreading_enabled() -> bool:
    """The last setting of `set_multithreading_enabled`; True by default."""
    return _enabled.get()
