"""`DataLoader`: batches of a dataset, in order, made here or by workers ahead of time."""

from __future__ import annotations

import multiprocessing
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import count, islice
from types import GenericAlias
from typing import Any

from common.core.devices import on_cpu
from common.core.errors import ArgumentError, StateError
from common.data import collate as collating  # whose functions are as users have them only when all is imported
from common.data.datasets import IterableDataset, stacked_rows
from common.data.samplers import BatchSampler, RandomSampler, SequentialSampler
from common.data.worker import Ended, EndOfPart, Failure, Setup, WorkerInfo, Workers
from common.random import generator as random

_FIXED = frozenset(["batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"])


class _Position:
    """How far an iteration is: the states of the generators where it began, and how many batches it has given."""

    def __init__(self, begun: list[Any], given: int = 0) -> None:
        self.begun, self.given = begun, given
        self.alive: Callable[[], Any] = _nobody  # whoever takes the batches

    def __reduce__(self) -> Any:
        return _Position, (self.begun, self.given)


def _nobody() -> None:
    return None


def _states(generators: Iterable[random.Generator]) -> list[Any]:
    return [g.get_state() for g in generators]


def _restore(generators: Iterable[random.Generator], states: Iterable[Any]) -> None:
    for generator, state in zip(generators, states, strict=True):
        generator.set_state(state)


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
        self.collate_fn = collate_fn or (
            collating.default_convert if batch_sampler is None else collating.default_collate
        )
        self.num_workers, self.timeout, self.worker_init_fn = num_workers, timeout, worker_init_fn
        self.pin_memory, self.pin_memory_device, self.in_order = pin_memory, pin_memory_device, in_order
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.persistent_workers = persistent_workers
        self.multiprocessing_context = multiprocessing_context
        self._kept: Workers | None = None
        self._position: _Position | None = None
        self._to_resume: _Position | None = None
        self._made = True

    __class_getitem__: Any = classmethod(GenericAlias)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FIXED and "_made" in self.__dict__:
            raise ArgumentError(f"{name} attribute should not be set after DataLoader is initialized; make a new one")
        super().__setattr__(name, value)

    @property
    def _orders(self) -> Iterable[Any]:
        """The samples of each batch: lists of indices, single indices, or counts for an iterable dataset."""
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
        """All batches; after `load_state_dict`, those that are left."""
        generators, before = self._generators(), self._to_resume
        self._to_resume = None
        if before is None:
            return self._iteration(_Position(_states(generators)))
        present = _states(generators)
        _restore(generators, before.begun)
        batches = self._iteration(before)
        _restore(generators, present)
        return batches

    def _iteration(self, position: _Position) -> Iterator[Any]:
        """The batches behind a position; the generators are where the iteration began."""
        seed = int(random.randint(0, 2**53, (1,), generator=self.generator)[0])
        if self.num_workers == 0 and not self.iterable:
            orders = iter(self._orders)
            for _ in islice(orders, position.given):
                pass  # what has been given need not be made again
            batches = self._counted(self._here(orders), position)
        else:
            skipped, position.given = position.given, 0
            batches = self._counted(self._elsewhere(seed) if self.num_workers else self._here(self._orders), position)
            for _ in islice(batches, skipped):
                pass
        self._position, position.alive = position, weakref.ref(batches)
        return batches

    def state_dict(self) -> dict[str, Any]:
        """Where the iteration under way is: how many batches it has given, and the generators that decide its order.

        A loader of the same dataset and options that has loaded it goes on behind them: what has been given is not made
        again, except by workers and of iterable datasets, which make it again and drop it. The default generator is
        part of its own state (`get_rng_state`); its state where the iteration began is part of this one.

        Examples
        --------
        >>> import dynamic as tw
        >>> loader = tw.utils.data.DataLoader(tw.arange(6), batch_size=2)
        >>> batches = iter(loader)
        >>> next(batches)
        tensor([0, 1])
        >>> state = loader.state_dict()
        >>> other = tw.utils.data.DataLoader(tw.arange(6), batch_size=2)
        >>> other.load_state_dict(state)
        >>> list(other)
        [tensor([2, 3]), tensor([4, 5])]
        """
        own = _states(self._generators()[1:])
        position = self._position
        if position is None or position.alive() is None:
            position = self._to_resume
        under_way = None if position is None else {"given": position.given, "begun": position.begun}
        return {"iteration": under_way, "generators": own}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Begin the next iteration where the one of `state_dict` was.

        Raises
        ------
        StateError : it is no such state, or that of a loader with other generators.
        """
        generators = self._generators()
        try:
            own, under_way = list(state_dict["generators"]), state_dict["iteration"]
            before = None if under_way is None else _Position(list(under_way["begun"]), int(under_way["given"]))
            if len(own) + 1 != len(generators) or (before and len(before.begun) != len(generators)):
                raise ValueError(f"it has {len(own) + 1} generators, the loader {len(generators)}")
            if before is not None and before.given < 0:
                raise ValueError(f"it has given {before.given} batches")
            for state in (*own, *(before.begun if before else ())):
                random.Generator().set_state(state)
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(f"DataLoader: this is no state of such a loader: {error}") from error
        _restore(generators[1:], own)
        self._position, self._to_resume = None, before

    def _generators(self) -> list[random.Generator]:
        """The generators that decide the order of batches: the default one, and those that loader and samplers have."""
        inner = getattr(self.batch_sampler, "sampler", None)
        owners = (self, self.sampler, self.batch_sampler, inner)
        own = [g for x in owners if isinstance(g := getattr(x, "generator", None), random.Generator)]
        return list({id(g): g for g in (random.default_generator, *own)}.values())

    def _counted(self, batches: Iterator[Any], position: _Position) -> Iterator[Any]:
        """The batches, counted; an iteration that has ended or is left has no position."""
        try:
            for batch in batches:
                position.given += 1
                yield batch
        finally:
            if self._position is position:
                self._position = None

    def _fetch(self) -> Callable[[Any], Callable[[Any], Any]]:
        options = self.collate_fn, self.batch_sampler is not None, self.drop_last
        return partial(_of_iterable if self.iterable else _of_indices, *options)

    def _here(self, orders: Iterable[Any]) -> Iterator[Any]:
        get = self._fetch()(self.dataset)
        for order in orders:
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
        if collate is collating.default_collate and (batch := stacked_rows(dataset, order)) is not None:
            return batch
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
