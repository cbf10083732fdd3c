"""Samplers: in which order a loader takes the samples of a dataset."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import islice
from typing import Any, Generic, TypeVar

from common.core.errors import ArgumentError, NotDefinedError
from common.random import generator as random
from common.random import orders, sampling
from common.tensor.create import as_tensor

__all__ = [
    "BatchSampler", "DistributedSampler", "RandomSampler", "Sampler", "SequentialSampler", "SubsetRandomSampler",
    "WeightedRandomSampler",
]  # fmt: skip

T = TypeVar("T", covariant=True)


class Sampler(Generic[T]):
    """An order of indices, or of lists of them: a subclass defines ``__iter__``."""

    def __init__(self, data_source: Any = None) -> None:
        pass

    def __iter__(self) -> Iterator[T]:
        """The indices; defined by each subclass."""
        raise NotDefinedError("Subclasses of Sampler should implement __iter__.")


class SequentialSampler(Sampler[int]):
    """Indices from 0 on.

    Parameters
    ----------
    data_source : dataset.
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        """The indices."""
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


def seeded(generator: random.Generator | None) -> random.Generator:
    """The generator of a sampler: the given one, or a new one, whose seed is one draw of the default generator."""
    if generator is not None:
        return generator
    return random.Generator(int(random.randint(0, 2**53, (1,))[0]))


class RandomSampler(Sampler[int]):
    """Indices in random order, a new one each time.

    Parameters
    ----------
    data_source : dataset.
    replacement : whether an index may be drawn again.
    num_samples : how many; by default as many as there are.
    generator : where the order is drawn from; by default one that the default generator seeds each time.

    Raises
    ------
    ArgumentError : a number that is not positive, or flags that are no flags.

    Examples
    --------
    >>> sorted(RandomSampler(range(5)))
    [0, 1, 2, 3, 4]
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: random.Generator | None = None,
    ) -> None:
        if not isinstance(replacement, bool):
            raise ArgumentError(f"replacement should be a boolean value, but got replacement={replacement!r}")
        if num_samples is not None and (not isinstance(num_samples, int) or num_samples < 0):
            raise ArgumentError(f"num_samples should be a non-negative integer value, but got {num_samples!r}")
        self.data_source, self.replacement, self._num_samples = data_source, replacement, num_samples
        self.generator = generator

    @property
    def num_samples(self) -> int:
        """How many indices an order has."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        """An order."""
        n, generator, left = len(self.data_source), seeded(self.generator), self.num_samples
        if self.replacement:
            for start in range(0, left, 256):  # as many numbers as a loop may never ask for are not drawn at once
                yield from random.randint(0, n, (min(256, left - start),), generator=generator).tolist()
            return
        while left > 0 and n:
            yield from orders.randperm(n, generator=generator).tolist()[:left]
            left -= n

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Given indices in random order.

    Parameters
    ----------
    indices : the indices.
    generator : where the order is drawn from; the default generator if None.
    """

    def __init__(self, indices: Sequence[int], generator: random.Generator | None = None) -> None:
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        """An order."""
        for i in orders.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices drawn with given probabilities.

    Parameters
    ----------
    weights : (n,) numbers, not negative; their sum need not be 1.
    num_samples : how many.
    replacement : whether an index may be drawn again.
    generator : where from; the default generator if None.

    Raises
    ------
    ArgumentError : a number that is not positive, or weights of another shape.
    """

    def __init__(
        self,
        weights: Any,
        num_samples: int,
        replacement: bool = True,
        generator: random.Generator | None = None,
    ) -> None:
        if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples <= 0:
            raise ArgumentError(f"num_samples should be a positive integer value, but got num_samples={num_samples}")
        if not isinstance(replacement, bool):
            raise ArgumentError(f"replacement should be a boolean value, but got replacement={replacement!r}")
        self.weights = as_tensor(list(weights) if isinstance(weights, map) else weights).double()
        if self.weights.ndim != 1:
            raise ArgumentError(f"weights should be a 1d sequence but given weights have shape {self.weights.shape}")
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def __iter__(self) -> Iterator[int]:
        """The indices."""
        drawn = sampling.multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator)
        return iter(drawn.tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Indices of another sampler in lists.

    Parameters
    ----------
    sampler : indices.
    batch_size : of a list.
    drop_last : leave out a last list that is shorter.

    Raises
    ------
    ArgumentError : a size that is not positive, or a flag that is none.

    Examples
    --------
    >>> list(BatchSampler(range(5), 2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ArgumentError(f"batch_size should be a positive integer value, but got batch_size={batch_size!r}")
        if not isinstance(drop_last, bool):
            raise ArgumentError(f"drop_last should be a boolean value, but got drop_last={drop_last!r}")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        """The lists."""
        left, size = iter(self.sampler), min(self.batch_size, sys.maxsize)
        while (batch := list(islice(left, size))) and (len(batch) == size or not self.drop_last):
            yield batch

    def __len__(self) -> int:
        n = len(self.sampler)  # type: ignore[arg-type]
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


class DistributedSampler(Sampler[int]):
    """The part of an order that one of several processes takes; all parts have the same length.

    Parameters
    ----------
    dataset : dataset.
    num_replicas, rank : how many processes there are, and the number of this one.
    shuffle : whether the order is random: that of `seed` and the epoch.
    seed : the same in all processes.
    drop_last : whether what does not fill all parts is left out; else the first indices come again.

    Raises
    ------
    ArgumentError : numbers of processes that make no sense, or are not given: nothing here knows them.

    Examples
    --------
    >>> [list(DistributedSampler(range(5), 2, rank, shuffle=False)) for rank in range(2)]
    [[0, 2, 4], [1, 3, 0]]
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None or rank is None:
            raise ArgumentError("DistributedSampler(): give num_replicas and rank; there is no process group to ask")
        if not 0 <= rank < num_replicas:
            raise ArgumentError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset, self.num_replicas, self.rank, self.epoch = dataset, num_replicas, rank, 0
        self.shuffle, self.seed, self.drop_last = shuffle, seed, drop_last
        n = len(dataset)
        self.num_samples = n // num_replicas if drop_last else -(-n // num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        """The part of one process."""
        n = len(self.dataset)
        order = list(range(n))
        if self.shuffle:
            order = orders.randperm(n, generator=random.Generator(self.seed + self.epoch)).tolist()
        if n:
            order = (order * -(-self.total_size // n))[: self.total_size]
        return iter(order[self.rank :: self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """The number of the epoch, on which the random order depends."""
        self.epoch = epoch
