"""Ranks that are processes of this machine, joined by pipes: what MPI does, without MPI."""

from __future__ import annotations

import multiprocessing
import threading
from collections import defaultdict, deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import numpy as np


class PipeRanks:
    """One rank of several: a pipe to each other one, and a thread that writes to it."""

    def __init__(self, rank: int, pipes: dict[int, Any], size: int) -> None:
        self.rank, self.size, self._pipes = rank, size, pipes
        self._arrived: dict[Any, deque[bytes]] = defaultdict(deque)
        self._queues: dict[int, Any] = {other: SimpleQueue() for other in pipes}
        for other in pipes:
            threading.Thread(target=self._write, args=(other,), daemon=True).start()

    def _write(self, other: int) -> None:
        while (item := self._queues[other].get()) is not None:
            message, done = item
            self._pipes[other].send(message)
            done.set()

    def send(self, array: np.ndarray, to: int, tag: int) -> Any:
        done = threading.Event()
        self._queues[to].put(((tag, array.tobytes()), done))
        return done

    def receive(self, array: np.ndarray, source: int, tag: int) -> None:
        while not self._arrived[source, tag]:
            found, data = self._pipes[source].recv()
            self._arrived[source, found].append(data)
        array.view(np.uint8).reshape(-1)[:] = np.frombuffer(self._arrived[source, tag].popleft(), np.uint8)


def run(program: Callable[[PipeRanks], Any], size: int) -> list[Any]:
    """The results of a program in each of `size` forked processes."""
    context = multiprocessing.get_context("fork")
    pipes: list[dict[int, Any]] = [{} for _ in range(size)]
    for i in range(size):
        for j in range(i):
            pipes[i][j], pipes[j][i] = context.Pipe()
    answers = [context.Pipe(duplex=False) for _ in range(size)]

    def child(rank: int) -> None:
        ranks = PipeRanks(rank, pipes[rank], size)
        try:
            answers[rank][1].send((program(ranks), ranks.rank))
        except BaseException as error:
            answers[rank][1].send((error, None))
            raise

    processes = [context.Process(target=child, args=(rank,)) for rank in range(size)]
    for process in processes:
        process.start()
    try:
        results = []
        for reader, _ in answers:
            assert reader.poll(120), "a rank does not answer"
            result, rank = reader.recv()
            assert rank is not None, result
            results.append(result)
        return results
    finally:
        for process in processes:
            process.join(5)
            if process.is_alive():
                process.kill()
