"""PyTorch's switch of threads of backward passes, and its class of saved tensors, which nobody makes."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, NoReturn

from common.core.errors import GradientError

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


class SavedTensor:
    """What a recorded op has saved; programs meet it in hooks only.

    Raises
    ------
    GradientError : always: only the tape makes it.
    """

    def __init__(self) -> NoReturn:
        raise GradientError("Trying to create a SavedTensor object from Python is forbidden.")
