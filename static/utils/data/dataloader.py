"""The loader, what it takes, and the functions that make batches of samples."""

from collections.abc import Iterator

from common.data.collate import default_collate, default_convert
from common.data.datasets import Dataset, IterableDataset
from common.data.loader import DataLoader
from common.data.samplers import BatchSampler, RandomSampler, Sampler, SequentialSampler
from common.data.worker import get_worker_info

#: What a loader's iterator is an instance of; libraries name it by PyTorch's classes.
_BaseDataLoaderIter = _MultiProcessingDataLoaderIter = Iterator

__all__ = [
    "BatchSampler", "DataLoader", "Dataset", "IterableDataset", "RandomSampler", "Sampler", "SequentialSampler",
    "default_collate", "default_convert", "get_worker_info",
]  # fmt: skip
