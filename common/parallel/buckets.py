"""Buckets: parameters, buffers or numbers of one dtype as one vector, which ranks exchange as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from common.parallel.addition_tree import Span, added, share_of, spans_within
from common.parallel.ranks import Array, Ranks, Sending


class PlaceInBucket(NamedTuple):
    """Where one array lies in a bucket."""

    start: int
    stop: int
    shape: tuple[int, ...]


class Bucket:
    """One vector per micro-batch of this rank, and what becomes of them: their sum over all micro-batches.

    The elements are divided among ranks. Each rank gets, of its elements, the sums over the largest parts of the tree
    that the others have, completes the tree, and sends the total to all: as many bytes as a ring would.

    Parameters
    ----------
    number : of the bucket; the same in all ranks.
    shapes : of the arrays in it.
    dtype : of all.
    tree : all micro-batches.
    ranks : who takes part.
    """

    def __init__(self, number: int, shapes: Iterable[tuple[int, ...]], dtype: Any, tree: Span, ranks: Ranks) -> None:
        self.number, self.tree, self.ranks, self.dtype = number, tree, ranks, np.dtype(dtype)
        self.places: list[PlaceInBucket] = []
        length = 0
        for shape in shapes:
            size = int(np.prod(shape, dtype=np.int64))
            self.places.append(PlaceInBucket(length, length + size, shape))
            length += size
        self.length, self.nbytes_sent = length, 0
        self._owned = [share_of(r, ranks.size, tree[1]) for r in range(ranks.size)]
        self._pieces = [share_of(r, ranks.size, length) for r in range(ranks.size)]
        self.clear()

    def clear(self) -> None:
        """Forget what is there, as of a step that has failed."""
        self._leaves: dict[Span, Array] = {}
        self._parts: dict[Span, Array] = {}
        self._sendings: list[tuple[Sending, Array]] = []
        self.sent = False

    def vector(self, micro_batch: int) -> Array:
        """The vector of a micro-batch, of zeros at first."""
        span = micro_batch, micro_batch + 1
        if span not in self._leaves:
            self._leaves[span] = np.zeros(self.length, self.dtype)
        return self._leaves[span]

    def put(self, micro_batch: int, i: int, array: Array) -> None:
        """Write the i-th array of a micro-batch."""
        start, stop, _ = self.places[i]
        self.vector(micro_batch)[start:stop] = array.reshape(-1)

    def get(self, total: Array, i: int) -> Array:
        """The i-th array of a total."""
        start, stop, shape = self.places[i]
        return total[start:stop].reshape(shape)

    def begin(self) -> None:
        """Add up what this rank has, and begin to send it; all its micro-batches are written."""
        me, self.sent = self.ranks.rank, True
        spans = list(spans_within(self.tree, self._owned[me]))
        self._parts = {span: added(span, self._leaves) for span in spans}
        self._leaves = {}
        for other in self._others():
            start, stop = self._pieces[other]
            if spans and stop > start:
                self._send(np.stack([self._parts[span][start:stop] for span in spans]), other)

    def total(self) -> Array:
        """The sum over all micro-batches, the same in all ranks."""
        me, result = self.ranks.rank, np.empty(self.length, self.dtype)
        start, stop = self._pieces[me]
        known = {span: part[start:stop] for span, part in self._parts.items()}
        for other in self._others():
            spans = list(spans_within(self.tree, self._owned[other]))
            if spans and stop > start:
                found = np.empty((len(spans), stop - start), self.dtype)
                self.ranks.receive(found, other, 2 * self.number)
                known.update(zip(spans, found, strict=True))
        if stop > start:
            result[start:stop] = added(self.tree, known)
            for other in self._others():
                self._send(result[start:stop].copy(), other, 1)
        for other in self._others():
            first, last = self._pieces[other]
            if last > first:
                self.ranks.receive(result[first:last], other, 2 * self.number + 1)
        for sending, _ in self._sendings:
            sending.wait()
        self.clear()
        return result

    def _others(self) -> Sequence[int]:
        """All other ranks, beginning with the next one, so that not all send to one."""
        me, count = self.ranks.rank, self.ranks.size
        return [(me + i) % count for i in range(1, count)]

    def _send(self, array: Array, to: int, back: int = 0) -> None:
        self.nbytes_sent += array.nbytes
        self._sendings.append((self.ranks.send(array, to, 2 * self.number + back), array))


def bucketed(sizes: Sequence[tuple[Any, int]], limit: int) -> list[list[int]]:
    """Divide arrays into buckets of one dtype and of about `limit` bytes, in their order.

    Parameters
    ----------
    sizes : dtype and bytes of each.

    Examples
    --------
    >>> bucketed([("f4", 60), ("f4", 60), ("f8", 8), ("f4", 10)], 100)
    [[0], [1, 3], [2]]
    """
    found: list[list[int]] = []
    open_: dict[Any, tuple[list[int], int]] = {}
    for i, (dtype, nbytes) in enumerate(sizes):
        members, total = open_.get(dtype, ([], limit))
        if total + nbytes > limit:
            members, total = [], 0
            found.append(members)
        members.append(i)
        open_[dtype] = members, total + nbytes
    return found
