"""Processes of a program: Python's own, whose queues carry tensors as copies."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from typing import Any

from common.core.errors import ArgumentError, WorkerError
from common.core.int_arguments import integer, shown

_STRATEGY = "file_system"
MOST_PROCESSES = 1 << 16
"""More is a mistake."""


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> Any:
    """Run ``fn(i, *args)`` in processes i = 0, ..., nprocs - 1.

    Parameters
    ----------
    join : wait for them; otherwise a list of the processes is returned.
    daemon : whether they end with this process.
    start_method : "spawn", "fork" or "forkserver".

    Raises
    ------
    ArgumentError : a number of processes that is below 0, or beyond reason.
    WorkerError : a process that was waited for ended with an error.
    """
    if not callable(fn):
        raise ArgumentError(f"multiprocessing.spawn(): fn must be a function, got {shown(fn)}")
    nprocs = integer(nprocs, "multiprocessing.spawn", "nprocs")
    if not 0 <= nprocs <= MOST_PROCESSES:
        raise ArgumentError(f"multiprocessing.spawn(): nprocs must be 0 to {MOST_PROCESSES}, got {nprocs}")
    context = multiprocessing.get_context(start_method)
    processes = [context.Process(target=fn, args=(i, *args), daemon=daemon) for i in range(nprocs)]  # type: ignore[attr-defined]
    for process in processes:
        process.start()
    if not join:
        return processes
    for i, process in enumerate(processes):
        process.join()
        if process.exitcode:
            for other in processes:
                other.terminate()
            raise WorkerError(f"process {i} terminated with exit code {process.exitcode}")
    return None


def get_all_sharing_strategies() -> set[str]:
    """The one way in which tensors go to other processes: as copies."""
    return {_STRATEGY}


def get_sharing_strategy() -> str:
    """See `get_all_sharing_strategies`."""
    return _STRATEGY


def set_sharing_strategy(new_strategy: str) -> None:
    """Accepted for the strategy that there is.

    Raises
    ------
    ArgumentError : another one.
    """
    if new_strategy != _STRATEGY:
        raise ArgumentError(f"sharing strategy {new_strategy!r} is not here: tensors go to other processes as copies")


def python_name(name: str) -> Any:
    """A name of Python's `multiprocessing`.

    Raises
    ------
    AttributeError : it has none.
    """
    return getattr(multiprocessing, name)


__all__ = ["get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy", "spawn"]
