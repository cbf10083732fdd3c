"""Who takes part: ranks that send arrays to each other, by MPI or, alone, to nobody."""

from __future__ import annotations

import os
from time import sleep
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from common.core.errors import ArgumentError

Array = NDArray[Any]
_LAUNCHED = ("PMI_SIZE", "PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_SIZE", "MPI_LOCALNRANKS")


class Sending(Protocol):
    """An array that is on its way."""

    def wait(self) -> Any:
        """Return when its memory may be written to again."""


class Ranks(Protocol):
    """Processes that run the same program; anything with these four serves.

    Attributes
    ----------
    rank, size : the number of this process, and how many there are.
    """

    @property
    def rank(self) -> int:
        """The number of this process, from 0."""

    @property
    def size(self) -> int:
        """How many there are."""

    def send(self, array: Array, to: int, tag: int) -> Sending:
        """Begin to send a contiguous array; messages of one tag arrive in the order in which they are sent."""

    def receive(self, array: Array, source: int, tag: int) -> None:
        """Fill an array with what a rank has sent, and wait for it."""


class Alone:
    """One rank."""

    rank, size = 0, 1

    def send(self, array: Array, to: int, tag: int) -> Sending:
        """There is nobody to send to."""
        raise ArgumentError("there is one rank: nobody to send to")

    def receive(self, array: Array, source: int, tag: int) -> None:
        """There is nobody who sends."""
        raise ArgumentError("there is one rank: nobody sends")


class MPIRanks:
    """The ranks of a communicator of mpi4py.

    Parameters
    ----------
    communicator : such as ``MPI.COMM_WORLD``.
    """

    def __init__(self, communicator: Any) -> None:
        self._communicator = communicator
        self.rank: int = communicator.Get_rank()
        self.size: int = communicator.Get_size()

    def send(self, array: Array, to: int, tag: int) -> Sending:
        """Begin to send an array."""
        return _Request(self._communicator.Isend(array.view(np.uint8), dest=to, tag=tag))

    def receive(self, array: Array, source: int, tag: int) -> None:
        """Wait for an array."""
        _Request(self._communicator.Irecv(array.view(np.uint8), source=source, tag=tag)).wait()


class _Request:
    """A request of MPI, waited for in turns with whatever else wants the core, such as the rank that is to send."""

    def __init__(self, request: Any) -> None:
        self._request = request

    def wait(self) -> None:
        """Return when it is done."""
        while not self._request.Test():
            sleep(0)


def world() -> Ranks:
    """All ranks that ``mpiexec`` has started; one rank if it has started none.

    Raises
    ------
    ArgumentError : under mpiexec, without the package mpi4py.

    Examples
    --------
    >>> world().rank, world().size
    (0, 1)
    """
    if not any(name in os.environ for name in _LAUNCHED):
        return Alone()
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise ArgumentError(
            f"world(): this process was started by mpiexec, but mpi4py is missing ({error}): "
            "python3 -m pip install mpi4py mpich"
        ) from error
    return MPIRanks(MPI.COMM_WORLD)
