"""Worker processes of a loader: each gets indices through a pipe and sends batches back.

A worker reads its orders in a thread of its own, so that whoever sends them never waits for a batch that is not taken
yet. An error is sent back with its traceback; that a worker has ended is seen at its process, whatever ended it.
"""

from __future__ import annotations

import contextlib
import os
import queue
import random as python_random
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from multiprocessing import connection
from typing import Any, NamedTuple

import numpy as np

from common.core.errors import WorkerError
from common.random import generator as random
from common.runtime.thread_pool import set_num_threads


class WorkerInfo(NamedTuple):
    """A worker process's description of itself.

    Attributes
    ----------
    id : its number, from 0 on.
    num_workers : how many there are.
    seed : of its random numbers: one number of the loader's generator, and its id.
    dataset : its copy of the dataset.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """The description of this worker process; None outside of one."""
    return _info


class EndOfPart(Exception):
    """Raised in a worker whose part of an iterable dataset has ended."""


class Ended(NamedTuple):
    """Sent by a worker whose part of an iterable dataset has ended."""

    worker: int


class Failure(NamedTuple):
    """Sent by a worker in the place of a batch: an error's class and its text with the traceback."""

    kind: type[BaseException]
    text: str

    def again(self) -> BaseException:
        """The error, to be raised in the process of the loader."""
        try:
            return self.kind(self.text)
        except Exception:  # a class that takes other arguments
            return WorkerError(self.text)


def failure(worker: int) -> Failure:
    """The present error of a worker."""
    found = sys.exc_info()
    kind = found[0]
    told = "".join(traceback.format_exception(*found))
    assert kind is not None
    return Failure(kind, f"Caught {kind.__name__} in DataLoader worker process {worker}.\nOriginal {told}")


class Setup(NamedTuple):
    """The arguments that a worker process starts with.

    Attributes
    ----------
    fetch : ``fetch(dataset) -> (indices -> batch)``; the second raises `EndOfPart` where an iterable one ends.
    init : the user's ``worker_init_fn``, or None.
    """

    info: WorkerInfo
    fetch: Callable[[Any], Callable[[Any], Any]]
    init: Callable[[int], Any] | None


def run(setup: Setup, pipe: Any) -> None:
    """Be a worker until the pipe says None, or ends with the process at its other end."""
    global _info
    info = setup.info
    orders: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(pipe, orders), daemon=True).start()
    get: Any = None
    broken = None
    while (order := orders.get()) is not None:
        number, indices = order
        if number < 0:  # a new round, with this seed
            info = _info = info._replace(seed=indices + info.id)
            get, broken = None, None
            try:
                _begin(info)
                if setup.init is not None:
                    setup.init(info.id)
                get = setup.fetch(info.dataset)
            except Exception:
                broken = failure(info.id)
            continue
        try:
            reply = broken if broken is not None else get(indices)
        except EndOfPart:
            reply = Ended(info.id)
        except Exception:
            reply = failure(info.id)
        try:
            pipe.send((number, reply))
        except OSError:
            return
        except Exception:  # a batch that cannot be pickled
            pipe.send((number, failure(info.id)))


def _read(pipe: Any, orders: queue.SimpleQueue[Any]) -> None:
    order: Any = ()
    while order is not None:
        try:
            order = pipe.recv()
        except (EOFError, OSError):
            order = None
        orders.put(order)


def _begin(info: WorkerInfo) -> None:
    """Seed all random numbers of a worker; it computes in one thread."""
    set_num_threads(1)
    python_random.seed(info.seed)
    np.random.seed(info.seed % 2**32)  # noqa: NPY002  what datasets of users draw from
    random.manual_seed(info.seed)


class Workers:
    """Processes that make batches.

    Parameters
    ----------
    setups : one for each.
    context : of `multiprocessing`.

    Attributes
    ----------
    busy : numbers of the orders that each has not answered yet.
    """

    def __init__(self, setups: list[Setup], context: Any) -> None:
        self.processes: list[Any] = []
        self.pipes: list[Any] = []
        self.home = os.getpid()
        for setup in setups:
            ours, theirs = context.Pipe()
            process = context.Process(target=_main, args=(setup, theirs, [*self.pipes, ours]), daemon=True)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads, see common.core.locks
                process.start()
            theirs.close()
            self.processes.append(process)
            self.pipes.append(ours)

    def send(self, worker: int, number: int, order: Any) -> None:
        """Order a batch of a worker."""
        try:
            self.pipes[worker].send((number, order))
        except OSError:
            self._lost([worker])

    def receive(self, timeout: float) -> list[tuple[int, Any]]:
        """Wait for batches: their orders' numbers, with the batches.

        Parameters
        ----------
        timeout : seconds; 0 waits for ever.

        Raises
        ------
        WorkerError : a worker has ended, or nothing came in time.
        """
        sentinels = [process.sentinel for process in self.processes]
        ready = connection.wait([*self.pipes, *sentinels], timeout or None)
        if not ready:
            raise WorkerError(f"DataLoader timed out after {timeout} seconds")
        found = []
        for worker, pipe in enumerate(self.pipes):
            if pipe in ready:
                try:
                    found.append(pipe.recv())
                except (EOFError, OSError):
                    self._lost([worker])
        if not found:
            self._lost([i for i, sentinel in enumerate(sentinels) if sentinel in ready])
        return found

    def _lost(self, workers: list[int]) -> None:
        ended = [self.processes[i] for i in workers]
        for process in ended:
            process.join(1)
        told = ", ".join(f"{p.pid} (exit code {p.exitcode})" for p in ended)
        raise WorkerError(
            f"DataLoader worker (pid(s) {told}) exited unexpectedly; a negative code is the number of the signal that "
            "killed it, -9 often means that memory ran out. num_workers=0 shows an error where it happens"
        )

    def close(self) -> None:
        """End the processes."""
        if os.getpid() != self.home:
            return
        for pipe in self.pipes:
            with contextlib.suppress(OSError, ValueError):
                pipe.send(None)
        for pipe in self.pipes:
            pipe.close()
        for process in self.processes:
            process.join(0.5)
            if process.is_alive():
                process.terminate()
                process.join(1)
            if process.is_alive():
                process.kill()
                process.join()
        self.processes, self.pipes = [], []


def _main(setup: Setup, pipe: Any, others: list[Any]) -> None:
    for other in others:  # of the loader's process, whose end is to be noticed
        other.close()
    with contextlib.suppress(KeyboardInterrupt):
        run(setup, pipe)
