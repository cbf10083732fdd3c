"""Locks that a fork leaves in order: every lock of the project is made here.

A forked process has one thread, the one that forked. A lock that another thread held at that moment would stay held for
ever, and what it guards half changed. So a fork waits until no other thread holds a lock, or imports a module, and the
child has them all free. It waits for a few seconds at most, and not at all for locks under which a user's own code
runs: these are made anew in the child, as is what was not given back in time.
"""

from __future__ import annotations

import _imp
import importlib._bootstrap as _imports
import os
import sys
from collections.abc import Callable
from threading import RLock, get_ident
from time import monotonic, sleep
from typing import Any
from weakref import ref

__all__ = ["after_fork", "make_lock"]

LIMIT = 5.0
"""Seconds that a fork waits for other threads at most."""
_PAUSE = 0.0005

_awaited: set[ref[Any]] = set()
_renewed: set[ref[Any]] = set()
_mends: list[Callable[[], None]] = []
_held: list[Any] = []
_forking = RLock()
"""Of the thread that forks: two at once would wait for each other's locks."""

#: Locks of the libraries that compile, where these are loaded: a module, and the names that lead to its lock.
_FOREIGN = (
    ("numba.core.compiler_lock", ("global_compiler_lock", "_lock")),
    ("llvmlite.binding.ffi", ("lib", "_lock", "_lock")),
)


def make_lock(*, runs_user_code: bool = False) -> Any:
    """A lock that its owner may take again.

    Parameters
    ----------
    runs_user_code : a user's code runs under it, for any time, and may wait for the thread that forks: a fork does not
        wait for it.
    """
    lock, group = RLock(), _renewed if runs_user_code else _awaited
    group.add(ref(lock, group.discard))
    return lock


def after_fork(mend: Callable[[], None]) -> None:
    """Have a function called in every forked process, whose locks are free: what told of other threads is forgotten."""
    _mends.append(mend)


def _all(group: set[ref[Any]]) -> list[Any]:
    return [lock for reference in list(group) if (lock := reference()) is not None]


def _foreign() -> list[Any]:
    found = []
    for module, names in _FOREIGN:
        x: Any = sys.modules.get(module)
        for name in names:
            x = getattr(x, name, None)
        if hasattr(x, "_at_fork_reinit"):
            found.append(x)
    return found


def _others_import() -> bool:
    """Whether another thread imports a module: the child could never import it."""
    locks = [reference() for reference in list(vars(_imports)["_module_locks"].values())]
    return any(getattr(lock, "owner", None) not in (None, get_ident()) for lock in locks)


class _ImportLock:
    """The interpreter's lock under which imports begin, as a lock."""

    release = staticmethod(_imp.release_lock)

    @staticmethod
    def acquire(timeout: float) -> bool:
        """Take it, unless another thread is in the middle of an import."""
        _imp.acquire_lock()
        if not _others_import():
            return True
        _imp.release_lock()
        sleep(_PAUSE)
        return False


def _wanted() -> list[Any]:
    """The locks that a fork takes."""
    return [*_all(_awaited), *_foreign(), _ImportLock]


def _hold() -> None:
    """Take all locks: wait for one of them while holding no other, so nobody waits in a circle; then try the others."""
    end = monotonic() + LIMIT
    if not _forking.acquire(timeout=LIMIT):
        return
    locks = _wanted()
    while True:
        seconds, missed = max(0.0, end - monotonic()), -1
        for i, lock in enumerate(locks):
            if not _take(lock, 0.0 if i else seconds):
                missed = i
                break
        held = set(map(id, _held))
        made = [lock for lock in _wanted() if id(lock) not in held] if missed < 0 else []
        if missed < 0 and not made:
            return
        _give_back()
        if monotonic() > end:
            return
        locks += made  # by a library that another thread has loaded while this one waited
        if missed >= 0 and locks[missed] is not _ImportLock:
            locks[0], locks[missed] = locks[missed], locks[0]


def _take(lock: Any, seconds: float) -> bool:
    taken: bool = lock.acquire(timeout=seconds)
    if taken:
        _held.append(lock)
    return taken


def _give_back() -> None:
    while _held:
        _held.pop().release()


def _in_parent() -> None:
    if _forking._is_owned():  # type: ignore[attr-defined]
        _give_back()
        _forking.release()


def _in_child() -> None:
    in_order = _forking._is_owned() and bool(_held)  # type: ignore[attr-defined]
    if in_order:
        _in_parent()
    _held.clear()
    for lock in [*_all(_renewed), *([] if in_order else [_forking, *_all(_awaited), *_foreign()])]:
        if not lock._is_owned():
            lock._at_fork_reinit()
    for mend in _mends:
        mend()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold, after_in_parent=_in_parent, after_in_child=_in_child)
