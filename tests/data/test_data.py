"""Datasets, samplers and loaders: order, batches, workers, and what happens when a worker fails."""

# mypy: disable-error-code="misc"
# its classes are those of a module that is loaded when it is asked for

import importlib
import os
import random
import signal
from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import ArgumentError, IndexRangeError, NotDefinedError, ShapeError, WorkerError

data: Any = importlib.import_module("dynamic.utils.data")
Pair = namedtuple("Pair", "x y")


class Squares(data.Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return {"x": np.float32(i), "y": (i * i, f"sample {i}")}


class Stream(data.IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        info = data.get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(range(first, self.n, step))


class Noise(Squares):
    def __getitem__(self, i):
        return float(dynamic.rand(1)), np.random.rand(), random.random()  # noqa: NPY002


class Odd(Exception):
    def __init__(self, first, second):
        super().__init__(first, second)


class Failing(Squares):
    def __init__(self, n, what):
        super().__init__(n)
        self.what = what

    def __getitem__(self, i):
        if i == 3:
            self.what()
        return i


def fail():
    raise KeyError("what was asked for")


def fail_oddly():
    raise Odd(1, 2)


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def test_both_engines_offer_the_same_classes():
    assert data.__all__ == static.utils.data.__all__
    assert all(getattr(data, name) is getattr(static.utils.data, name) for name in data.__all__)


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_come_in_order(workers):
    loader = data.DataLoader(Squares(7), batch_size=3, num_workers=workers)
    assert len(loader) == 3
    batches = list(loader)
    assert [b["x"].tolist() for b in batches] == [[0, 1, 2], [3, 4, 5], [6]]
    assert (batches[0]["x"].dtype, batches[0]["y"][0].dtype) == (np.float32, np.int64)
    assert batches[1]["y"][0].tolist() == [9, 16, 25]
    assert batches[2]["y"][1] == ("sample 6",)
    assert [len(b["x"]) for b in data.DataLoader(Squares(7), 3, drop_last=True, num_workers=workers)] == [3, 3]
    assert [b["y"][0] for b in data.DataLoader(Squares(3), None, num_workers=workers)] == [0, 1, 4]
    ready = data.DataLoader(Squares(7), 3, num_workers=workers, in_order=False)
    assert sorted(len(b["x"]) for b in ready) == [1, 3, 3]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_seed_repeats_order_and_noise(workers):
    def run(dataset):
        dynamic.manual_seed(5)
        loader = data.DataLoader(dataset, 4, shuffle=True, num_workers=workers)
        return [[np.asarray(x).tolist() for x in batch] for _ in range(2) for batch in loader]

    rows = data.TensorDataset(dynamic.arange(10), dynamic.arange(10.0))
    first = run(rows)
    assert first == run(rows)
    assert sorted(i for x, _ in first[:3] for i in x) == list(range(10))
    assert first[:3] != first[3:]
    if workers:
        noise = run(Noise(8))
        assert noise == run(Noise(8))
        assert len({x for batch in noise for column in batch for x in column}) == 2 * 8 * 3


@pytest.mark.parametrize("workers", [0, 2])
def test_streams(workers):
    seen = [b.tolist() for b in data.DataLoader(Stream(7), 2, num_workers=workers)]
    assert seen == ([[0, 2], [1, 3], [4, 6], [5]] if workers else [[0, 1], [2, 3], [4, 5], [6]])
    assert len(list(data.DataLoader(Stream(7), 2, drop_last=True, num_workers=workers))) == 3
    assert sorted(data.DataLoader(data.ChainDataset([Stream(2), Stream(1)]), None, num_workers=0)) == [0, 0, 1]


def test_an_error_in_a_worker_has_its_traceback():
    loader = data.DataLoader(Failing(6, fail), 1, num_workers=2)
    with pytest.raises(KeyError, match="Caught KeyError in DataLoader worker process 1") as caught:
        list(loader)
    assert "in fail" in str(caught.value)
    assert "what was asked for" in str(caught.value)
    with pytest.raises(WorkerError, match="Caught Odd in DataLoader"):
        list(data.DataLoader(Failing(6, fail_oddly), 1, num_workers=1))
    with pytest.raises(KeyError, match=r"^'what was asked for'$"):
        list(data.DataLoader(Failing(6, fail), 1))


def test_a_killed_worker_is_noticed():
    with pytest.raises(WorkerError, match=r"pid\(s\) \d+ \(exit code -9\)\) exited unexpectedly"):
        list(data.DataLoader(Failing(6, die), 1, num_workers=2))
    with pytest.raises(WorkerError, match=r"timed out after 0\.2 seconds"):
        list(data.DataLoader(Failing(6, lambda: signal.pause()), 1, num_workers=1, timeout=0.2))


def test_persistent_workers_and_their_beginning():
    pids = []
    options = {"collate_fn": lambda sample: os.getpid(), "worker_init_fn": lambda i: random.seed(i)}
    loader = data.DataLoader(Squares(2), None, num_workers=2, persistent_workers=True, **options)
    for _ in range(2):
        pids.append(list(loader))
    assert pids[0] == pids[1]
    assert len({*pids[0], os.getpid()}) == 3
    big = data.DataLoader(range(200_000), 100_000, num_workers=1, prefetch_factor=4)  # orders larger than a pipe holds
    assert [b.shape for b in big] == [(100_000,)] * 2
    left = iter(data.DataLoader(Squares(50), 1, num_workers=2))
    next(left)
    del left  # its processes end
    with pytest.raises(ZeroDivisionError, match="worker process 0"):
        list(data.DataLoader(Squares(2), num_workers=1, worker_init_fn=lambda i: 1 / 0))


def test_datasets():
    a, b = data.TensorDataset(dynamic.arange(3)), data.TensorDataset(dynamic.arange(3) + 10)
    both = a + b
    assert [int(both[i][0]) for i in (0, 2, 3, -1)] == [0, 2, 10, 12]
    with pytest.raises(IndexRangeError):
        both[6]
    assert [int(x) for (x,) in both] == [0, 1, 2, 10, 11, 12]
    assert data.StackDataset(x=a, y=b)[1] == {"x": (1,), "y": (11,)}
    parts = data.random_split(range(10), [0.5, 0.3, 0.2], dynamic.Generator(3))
    assert [len(p) for p in parts] == [5, 3, 2]
    assert sorted(x for part in parts for x in part) == list(range(10))
    assert [len(p) for p in data.random_split(range(10), [7, 3])] == [7, 3]
    for call, error in [
        (lambda: data.random_split(range(10), [7, 2]), ArgumentError),
        (lambda: data.TensorDataset(dynamic.ones(2), dynamic.ones(3)), ShapeError),
        (lambda: data.ConcatDataset([]), ArgumentError),
        (lambda: data.StackDataset(), ArgumentError),
        (lambda: data.Dataset()[0], NotDefinedError),
        (lambda: iter(data.IterableDataset()), NotDefinedError),
    ]:
        with pytest.raises(error):
            call()


def test_samplers():
    assert len(list(data.RandomSampler(range(5), num_samples=12))) == 12
    assert set(data.RandomSampler(range(3), replacement=True, num_samples=50)) == {0, 1, 2}
    assert next(iter(data.RandomSampler(range(3), replacement=True, num_samples=10**10))) in (0, 1, 2)
    drawn = [list(data.RandomSampler(range(9), True, n, dynamic.Generator(3))) for n in (700, 300)]
    assert drawn[0][:300] == drawn[1]
    assert sorted(data.SubsetRandomSampler([4, 6, 9])) == [4, 6, 9]
    assert set(data.WeightedRandomSampler([0, 1, 3], 100)) == {1, 2}
    assert list(data.BatchSampler(data.SequentialSampler(range(5)), 2, True)) == [[0, 1], [2, 3]]
    loader = data.DataLoader(range(6), batch_sampler=[[5, 1], [2]])
    assert [b.tolist() for b in loader] == [[5, 1], [2]]


def test_collating():
    batch = data.default_collate([Pair(np.ones(2), [True, 2.5]), Pair(np.zeros(2), [False, 1.5])])
    assert isinstance(batch, Pair)
    assert (batch.x.tolist(), batch.x.dtype) == ([[1, 1], [0, 0]], np.float64)
    assert [x.dtype.name for x in batch.y] == ["bool", "float64"]
    for wrong, error in [([{1}], ArgumentError), ([], ArgumentError), ([[1], [1, 2]], ArgumentError),
                         ([np.ones(2), np.ones(3)], ShapeError), ([np.array(["a"])], ArgumentError)]:  # fmt: skip
        with pytest.raises(error):
            data.default_collate(wrong)


@pytest.mark.parametrize("options", [
    {"num_workers": -1}, {"timeout": -1}, {"prefetch_factor": 2}, {"persistent_workers": True}, {"batch_size": 0},
    {"shuffle": True, "sampler": [0]}, {"batch_sampler": [[0]], "drop_last": True},
    {"batch_size": None, "drop_last": True}, {"num_workers": 1, "prefetch_factor": 0},
])  # fmt: skip
def test_options_that_exclude_each_other(options):
    with pytest.raises(ArgumentError):
        data.DataLoader(range(3), **options)
    with pytest.raises(ArgumentError):
        data.DataLoader(Stream(3), shuffle=True)


@pytest.mark.parametrize("engine", [dynamic, static], ids=lambda e: e.__name__)
def test_texts_of_samples_are_a_tuple_as_the_columns_of_tuples_are(engine):
    collate = engine.utils.data.default_collate
    assert collate(["a", "b"]) == ["a", "b"]
    assert collate([(1, "a"), (2, "b")])[1] == ("a", "b")
    assert collate([{"name": "a"}, {"name": "b"}]) == {"name": ["a", "b"]}
    ((numbers, texts),) = engine.utils.data.DataLoader([(1, "a"), (2, "b")], batch_size=2)
    assert (numbers.tolist(), texts) == ([1, 2], ("a", "b"))


def test_rows_of_tensors_are_the_samples_stacked():
    """A `TensorDataset` is read by batches where no result shows that: classes of users are asked for each sample."""
    rng = np.random.default_rng(5)
    x, y = dynamic.tensor(rng.normal(size=(11, 3)).astype(np.float32)), dynamic.arange(11)
    asked = []

    class Asked(data.TensorDataset):
        def __getitem__(self, i):
            asked.append(i)
            return super().__getitem__(i)

    leaf = dynamic.tensor(rng.normal(size=(11, 2)).astype(np.float32), requires_grad=True)
    sets = [data.TensorDataset(x, y), data.TensorDataset(y), data.TensorDataset(leaf, x), Asked(x, y)]
    sets += [data.Subset(data.Subset(sets[0], [9, 3, 10, 0]), [3, 1, 2])]
    sets += data.random_split(sets[0], [4, 7], generator=dynamic.Generator().manual_seed(1))
    for dataset in sets:
        for size in (1, 2, 4, 100):
            order = [[*range(len(dataset))][i : i + size] for i in range(0, len(dataset), size)]
            expected = [data.default_collate([dataset[i] for i in each]) for each in order]
            asked.clear()
            found = list(data.DataLoader(dataset, batch_size=size))
            assert asked == ([*range(11)] if type(dataset) is Asked else [])
            for batch, other in zip(found, expected, strict=True):
                assert type(batch) is list
                for a, b in zip(batch, other, strict=True):
                    assert (a.dtype, a.shape, a.requires_grad) == (b.dtype, b.shape, b.requires_grad)
                    assert a.detach().numpy().tobytes() == b.detach().numpy().tobytes()
                    assert not np.may_share_memory(a.detach().numpy(), x.numpy())
    batches = list(data.DataLoader(sets[0], batch_sampler=[[0, -1], (2, 3), [np.int64(4)]]))
    assert [b[1].tolist() for b in batches] == [[0, 10], [2, 3], [4]]
    assert len(list(data.DataLoader(sets[0], batch_size=2**70))) == 1
    with pytest.raises(IndexRangeError, match="11"):
        list(data.DataLoader(sets[0], batch_sampler=[[0, 11]]))


def test_batches_are_made_when_they_are_asked_for():
    taken = []
    batches = iter(data.BatchSampler((taken.append(i) or i for i in range(100)), 3, drop_last=False))
    assert (next(batches), taken) == ([0, 1, 2], [0, 1, 2])
    assert [len(b) for b in data.BatchSampler(range(8), 3, drop_last=True)] == [3, 3]
