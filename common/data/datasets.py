"""Datasets: samples by index, or one after the other."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from math import floor, isclose
from typing import Any, Generic, TypeVar

from common.core.errors import ArgumentError, IndexRangeError, NotDefinedError, ShapeError
from common.core.int_arguments import members
from common.core.unbroadcast import INTS
from common.random import generator as random
from common.random import orders
from common.tensor.base import TensorBase

__all__ = [
    "ChainDataset", "ConcatDataset", "Dataset", "IterableDataset", "StackDataset", "Subset", "TensorDataset",
    "random_split",
]  # fmt: skip

T = TypeVar("T", covariant=True)


class Dataset(Generic[T]):
    """Samples by index: a subclass defines ``__getitem__``, and ``__len__`` for samplers.

    One with ``__getitems__`` is asked for a whole batch of indices at once.
    """

    def __getitem__(self, index: Any) -> T:
        """One sample; defined by each subclass."""
        raise NotDefinedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[Any]) -> ConcatDataset[Any]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T]):
    """Samples one after the other: a subclass defines ``__iter__``.

    Every worker of a loader iterates over a copy: `get_worker_info` tells it which part is its own.
    """

    def __iter__(self) -> Iterator[T]:
        """All samples; defined by each subclass."""
        raise NotDefinedError("Subclasses of IterableDataset should implement __iter__.")

    def __add__(self, other: Dataset[Any]) -> Any:
        return ChainDataset([self, other])


class TensorDataset(Dataset[Any]):
    """Rows of tensors: sample i is a tuple of ``tensor[i]``.

    Parameters
    ----------
    tensors : (n, ...) each.

    Raises
    ------
    ShapeError : their first sizes differ.

    Examples
    --------
    >>> import dynamic as tw
    >>> TensorDataset(tw.arange(3), tw.ones(3))[1]
    (tensor(1), tensor(1.))
    """

    def __init__(self, *tensors: Any) -> None:
        if any(len(x) != len(tensors[0]) for x in tensors):
            raise ShapeError(f"Size mismatch between tensors: first sizes {[len(x) for x in tensors]}")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        """The tuple of row `index` of each tensor."""
        return tuple([x[index] for x in self.tensors])

    def __len__(self) -> int:
        return len(self.tensors[0]) if self.tensors else 0


class StackDataset(Dataset[T]):
    """Samples of several datasets side by side: a tuple, or a dictionary where they are given by name.

    Parameters
    ----------
    args, kwargs : datasets of equal lengths.

    Raises
    ------
    ArgumentError : none are given, both ways are used, or lengths differ.
    """

    datasets: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if bool(args) is bool(kwargs):
            raise ArgumentError("StackDataset(): give datasets either one by one or by name")
        self.datasets = args or kwargs
        lengths = {len(d) for d in args or kwargs.values()}
        if len(lengths) > 1:
            raise ArgumentError(f"Size mismatch between datasets: {sorted(lengths)}")
        self._length = lengths.pop()

    def __getitem__(self, index: Any) -> Any:
        """Sample `index` of each dataset."""
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[T]):
    """Samples of several datasets, one dataset after the other.

    Parameters
    ----------
    datasets : each with a length.

    Attributes
    ----------
    cumulative_sizes : where each dataset ends.

    Raises
    ------
    ArgumentError : there are none, or one is iterable.
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = members(datasets, "ConcatDataset", "datasets")
        if not self.datasets:
            raise ArgumentError("datasets should not be an empty iterable")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise ArgumentError("ConcatDataset does not support IterableDataset; use ChainDataset")
        self.cumulative_sizes = list(accumulate(len(d) for d in self.datasets))

    def __getitem__(self, index: Any) -> Any:
        """Sample `index`, counted through all datasets; a negative one from the end."""
        n = len(self)
        if not -n <= index < n:
            raise IndexRangeError(f"index {index} is out of range for {n} samples")
        index = index % n
        which = bisect_right(self.cumulative_sizes, index)
        return self.datasets[which][index - (self.cumulative_sizes[which - 1] if which else 0)]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


class ChainDataset(IterableDataset[Any]):
    """Samples of several iterable datasets, one dataset after the other.

    Parameters
    ----------
    datasets : iterable datasets.
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[Any]:
        """All samples."""
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise ArgumentError("ChainDataset only supports IterableDataset; use ConcatDataset")
            yield from dataset

    def __len__(self) -> int:
        return sum(len(d) for d in self.datasets)


class Subset(Dataset[T]):
    """Some samples of a dataset.

    Parameters
    ----------
    dataset : whose samples they are.
    indices : their indices.
    """

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: Any) -> Any:
        """Sample number `index` of the subset."""
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


def stacked_rows(dataset: Any, order: Any) -> list[Any] | None:
    """The batch that `default_collate` makes of samples of a `TensorDataset`, or a `Subset` of one; an index of each.

    None where samples are to be taken one by one: for subclasses, indices that are no ints, and tensors with gradient.
    """
    while type(dataset) is Subset and type(order) is list:
        dataset, order = dataset.dataset, [dataset.indices[i] for i in order]
    if type(dataset) is not TensorDataset or type(order) is not list or not INTS.issuperset(map(type, order)):
        return None
    if not order or any(not isinstance(x, TensorBase) or x.requires_grad for x in dataset.tensors):
        return None
    try:
        return [x[order] for x in dataset.tensors]
    except IndexError:  # which of the indices, says the sample
        return None


def random_split(
    dataset: Any, lengths: Sequence[float], generator: random.Generator | None = None
) -> list[Subset[Any]]:
    """Subsets of a dataset in random order, without common samples.

    Parameters
    ----------
    dataset : with a length.
    lengths : of the subsets; or fractions whose sum is 1, then what rounding leaves goes one by one to the first.
    generator : where the order is drawn from; the default generator if None.

    Raises
    ------
    ArgumentError : the sum is not the dataset's length, or a fraction is not in [0, 1].
    """
    total = len(dataset)
    counts = members(lengths, "random_split", "lengths")
    if (
        isclose(sum(counts), 1)
        and sum(counts) <= 1.0000001
        and not (total == 1 and all(float(n).is_integer() for n in counts))
    ):
        if any(not 0 <= part <= 1 for part in counts):
            raise ArgumentError(f"random_split(): fractions must be between 0 and 1, got {list(lengths)}")
        counts = [floor(total * part) for part in counts]
        for i in range(total - sum(counts)):
            counts[i % len(counts)] += 1
    if any(n != int(n) or n < 0 for n in counts) or sum(counts) != total:
        raise ArgumentError(
            f"Sum of input lengths does not equal the length of the input dataset! {list(lengths)} are of {total}"
        )
    order = _numbers(orders.randperm(total, generator=generator))
    ends = list(accumulate(int(n) for n in counts))
    return [Subset(dataset, order[end - int(n) : end]) for n, end in zip(counts, ends)]


def _numbers(order: Any) -> list[int]:
    numbers: list[int] = order.tolist()
    return numbers
