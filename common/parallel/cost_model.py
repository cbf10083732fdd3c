"""When do more ranks pay? A measured link and a model of the rest."""

from __future__ import annotations

from collections.abc import Iterable
from time import perf_counter
from typing import NamedTuple

import numpy as np

from common.core.errors import ArgumentError
from common.parallel.ranks import Ranks

POWERS = tuple(2**i for i in range(11))


class Link(NamedTuple):
    """The costs of a message.

    Attributes
    ----------
    latency : seconds of a message of no length.
    bytes_per_second : of a long one.
    """

    latency: float
    bytes_per_second: float


class Payoff(NamedTuple):
    """The model's prediction for a number of ranks.

    Attributes
    ----------
    ranks : how many.
    nbytes : that each rank sends per step.
    seconds : of a step, without overlap of sending and computing.
    speedup : against one rank.
    """

    ranks: int
    nbytes: int
    seconds: float
    speedup: float


def measured_link(ranks: Ranks, nbytes: int = 1 << 22, rounds: int = 20) -> Link:
    """Send to and fro between the ranks 0 and 1, and return the same figures in both; other ranks need not call it.

    Raises
    ------
    ArgumentError : there is one rank.
    """
    if ranks.size < 2:
        raise ArgumentError("measured_link() takes two ranks at least: start the program by mpiexec -n 2")
    buffers = np.zeros(8, np.uint8), np.zeros(nbytes, np.uint8)
    best = [float("inf"), float("inf")]
    for _ in range(rounds):  # in turns, so that other work on the machine meets both
        for i, buffer in enumerate(buffers):
            start = perf_counter()
            for sender in (0, 1):
                if ranks.rank == sender:
                    ranks.send(buffer, 1 - sender, 0).wait()
                elif ranks.rank == 1 - sender:
                    ranks.receive(buffer, sender, 0)
            best[i] = min(best[i], (perf_counter() - start) / 2)
    figures = np.array([best[0], nbytes / best[1]])
    if ranks.rank == 0:
        ranks.send(figures, 1, 0).wait()
    elif ranks.rank == 1:
        ranks.receive(figures, 0, 0)
    return Link(float(figures[0]), float(figures[1]))


def payoff(
    seconds_per_micro_batch: float, gradient_bytes: int, micro_batches: int, link: Link, ranks: Iterable[int] = POWERS
) -> list[Payoff]:
    """Predict the time of a step with more ranks: a model, not a measurement.

    A step is the micro-batches of the busiest rank, one after the other, and the exchange: each rank sends a piece of
    its sum to each other one, then its piece of the total, 2 (n - 1) messages and 2 (n - 1) / n of the gradients. It
    says nothing of overlap, which makes it less, nor of a network that is shared, which makes it more.

    Examples
    --------
    >>> for row in payoff(0.01, 4_000_000, 64, Link(5e-6, 1e9), ranks=(1, 8, 64)):
    ...     print(row.ranks, row.nbytes, f"{row.seconds:.4f} {row.speedup:.1f}")
    1 0 0.6400 1.0
    8 7000000 0.0871 7.4
    64 7875000 0.0185 34.6
    """
    rows = []
    for n in ranks:
        nbytes = 2 * gradient_bytes * (n - 1) // n
        seconds = -(-micro_batches // n) * seconds_per_micro_batch
        seconds += 2 * (n - 1) * link.latency + nbytes / link.bytes_per_second
        rows.append(Payoff(n, nbytes, seconds, micro_batches * seconds_per_micro_batch / seconds))
    return rows
