"""`DataLoader`: batches of a dataset, in order, made here or by workers ahead of time."""

from __future__ import annotations

import multiprocessing
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import count, islice
from typing import Any

from common.core.devices import on_cpu
from common.core.errors import ArgumentError, RegistrationError
from common.data.collate import default_collate, default_convert
from common.data.datasets import IterableDataset
from common.data.samplers import BatchSampler, RandomSampler, SequentialSampler
from common.data.worker import Ended, EndOfPart, Failure, Setup, WorkerInfo, Workers
from common.random import generator as random

_FIXED = frozenset(["batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"])


class DataLoader:
    """Iterates over a dataset in batches.

    Parameters
    ----------
    dataset : samples by index, or an `IterableDataset`.
    batch_size : samples of a batch; None gives samples one by one.
    shuffle : a new random order each time.
    sampler : an order of indices, instead of `shuffle`.
    batch_sampler : lists of indices, instead of all of these.
    num_workers : processes that make batches ahead; 0 makes them in this process when they are asked for.
    collate_fn : makes a batch of a list of samples; by default `default_collate`.
    pin_memory, pin_memory_device : accepted; without a GPU they change nothing.
    drop_last : leave out a last batch that is smaller.
    timeout : seconds that a batch of a worker may take; 0 is no limit.
    worker_init_fn : called in each worker with its number, after its random numbers are seeded.
    multiprocessing_context : of `multiprocessing`, or its name: "fork", "spawn", "forkserver".
    generator : where orders and the seeds of workers are drawn from; the default generator if None.
    prefetch_factor : batches ordered ahead of each worker; 2 by default.
    persistent_workers : keep the processes for the next iteration.
    in_order : give batches in the order of the sampler, not as they are ready.

    Raises
    ------
    ArgumentError : options that exclude each other, or a wrong number.

    Notes
    -----
    Workers draw random numbers of their own: Python's, numpy's and the default generator are seeded with one draw of
    the loader's generator, and the worker's number. So a run is repeated by `manual_seed`, whatever the workers' pace.

    Examples
    --------
    >>> import dynamic as tw
    >>> data = tw.utils.data.TensorDataset(tw.arange(5), tw.arange(5.0) * 2)
    >>> for x, y in tw.utils.data.DataLoader(data, batch_size=3):
    ...     print(x, y)
    tensor([0, 1, 2]) tensor([0., 2., 4.])
    tensor([3, 4]) tensor([6., 8.])
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        generator: random.Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        if not isinstance(num_workers, int) or num_workers < 0:
            raise ArgumentError(f"num_workers option should be non-negative, got {num_workers!r}; 0 means no processes")
        if not isinstance(timeout, (int, float)) or timeout < 0:
            raise ArgumentError(f"timeout option should be non-negative, got {timeout!r}")
        if num_workers == 0 and prefetch_factor is not None:
            raise ArgumentError(
                "prefetch_factor option could only be specified in multiprocessing; set num_workers > 0"
            )
        if num_workers and prefetch_factor is not None and prefetch_factor < 1:
            raise ArgumentError(f"prefetch_factor option should be positive, got {prefetch_factor}")
        if persistent_workers and num_workers == 0:
            raise ArgumentError("persistent_workers option needs num_workers > 0")
        on_cpu(pin_memory_device or None, "DataLoader")
        self.iterable = isinstance(dataset, IterableDataset)
        if self.iterable and (shuffle or sampler is not None or batch_sampler is not None):
            raise ArgumentError("DataLoader with IterableDataset: expected unspecified shuffle, sampler, batch_sampler")
        if sampler is not None and shuffle:
            raise ArgumentError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
            raise ArgumentError(
                "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
            )
        if batch_size is None and drop_last and batch_sampler is None:
            raise ArgumentError(
                "batch_size=None option disables auto-batching and is mutually exclusive with drop_last"
            )
        if sampler is None and not self.iterable:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_sampler is not None:
            batch_size = None
        elif batch_size is not None:
            batch_sampler = BatchSampler(sampler if not self.iterable else count(), batch_size, drop_last)
        self.dataset, self.batch_size, self.drop_last = dataset, batch_size, drop_last
        self.sampler, self.batch_sampler, self.generator = sampler, batch_sampler, generator
        self.collate_fn = collate_fn or (default_convert if batch_sampler is None else default_collate)
        self.num_workers, self.timeout, self.worker_init_fn = num_workers, timeout, worker_init_fn
        self.pin_memory, self.pin_memory_device, self.in_order = pin_memory, pin_memory_device, in_order
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.persistent_workers = persistent_workers
        self.multiprocessing_context = multiprocessing_context
        self._kept: Workers | None = None
        self._made = True

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FIXED and "_made" in self.__dict__:
            raise RegistrationError(
                f"{name} attribute should not be set after DataLoader is initialized; make a new one"
            )
        super().__setattr__(name, value)

    @property
    def _orders(self) -> Iterable[Any]:
        """What samples each batch has: lists of indices, single indices, or, of an iterable dataset, how many."""
        if self.batch_sampler is not None and not self.iterable:
            return self.batch_sampler
        if self.iterable:
            return iter(lambda: self.batch_size, ())
        return self.sampler

    def __len__(self) -> int:
        if not self.iterable:
            return len(self._orders)  # type: ignore[arg-type]
        n = len(self.dataset)
        size = self.batch_size
        return n if size is None else n // size if self.drop_last else -(-n // size)

    def __iter__(self) -> Iterator[Any]:
        """All batches."""
        seed = int(random.randint(0, 2**53, (1,), generator=self.generator)[0])
        if self.num_workers == 0:
            return self._here()
        return self._elsewhere(seed)

    def _fetch(self) -> Callable[[Any], Callable[[Any], Any]]:
        options = self.collate_fn, self.batch_sampler is not None, self.drop_last
        return partial(_of_iterable if self.iterable else _of_indices, *options)

    def _here(self) -> Iterator[Any]:
        get = self._fetch()(self.dataset)
        for order in self._orders:
            try:
                batch = get(order)
            except EndOfPart:
                return
            yield batch

    def _workers(self) -> Workers:
        context = self.multiprocessing_context
        if not hasattr(context, "Process"):
            context = multiprocessing.get_context(context or ("fork" if sys.platform == "linux" else None))
        fetch, n = self._fetch(), self.num_workers
        infos = [WorkerInfo(i, n, 0, self.dataset) for i in range(n)]
        return Workers([Setup(info, fetch, self.worker_init_fn) for info in infos], context)

    def _elsewhere(self, seed: int) -> Iterator[Any]:
        workers = self._kept
        if workers is None:
            workers = self._workers()
            if self.persistent_workers:
                self._kept = workers
                weakref.finalize(self, workers.close)
        completed = False
        try:
            yield from self._batches(workers, seed)
            completed = True
        finally:
            if not (completed and workers is self._kept):
                workers.close()  # an iteration that was left has orders under way
                if workers is self._kept:
                    self._kept = None

    def _batches(self, workers: Workers, seed: int) -> Iterator[Any]:
        """Order batches of the workers in turn, and give them as they were ordered."""
        for worker in range(self.num_workers):
            workers.send(worker, -1, seed)
        orders, given = iter(self._orders), 0
        whose: dict[int, int] = {}
        active = set(range(self.num_workers))
        arrived: dict[int, Any] = {}
        numbers = count()

        def order(worker: int) -> None:
            for wanted in islice(orders, 1):
                number = next(numbers)
                whose[number] = worker
                workers.send(worker, number, wanted)

        for _ in range(self.prefetch_factor or 2):
            for worker in range(self.num_workers):
                order(worker)
        while whose:
            while (given not in arrived) if self.in_order else not arrived:
                arrived.update(workers.receive(self.timeout))
            number = given if self.in_order else next(iter(arrived))
            given += 1
            reply, worker = arrived.pop(number), whose.pop(number)
            if isinstance(reply, Ended):
                active.discard(worker)
                continue
            if worker in active:
                order(worker)
            if isinstance(reply, Failure):
                raise reply.again()
            yield reply


def _of_indices(collate: Callable[[Any], Any], batched: bool, drop_last: bool, dataset: Any) -> Callable[[Any], Any]:
    """Batches of a dataset by index."""

    def get(order: Any) -> Any:
        if not batched:
            return collate(dataset[order])
        if callable(getattr(dataset, "__getitems__", None)):
            return collate(dataset.__getitems__(order))
        return collate([dataset[i] for i in order])

    return get


def _of_iterable(collate: Callable[[Any], Any], batched: bool, drop_last: bool, dataset: Any) -> Callable[[Any], Any]:
    """Batches of a dataset one after the other; EndOfPart ends them."""
    samples = iter(dataset)

    def get(order: Any) -> Any:
        if not batched:
            order = 1
        batch = list(islice(samples, order))
        if not batch or (drop_last and len(batch) < order):
            raise EndOfPart
        return collate(batch if batched else batch[0])

    return get
