"""Samples made into batches."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from common.core.dtypes import float64
from common.core.errors import ArgumentError, ShapeError
from common.ops.shape.cat import stack
from common.tensor.base import TensorBase
from common.tensor.create import as_tensor, tensor

#: How numpy describes dtypes whose arrays do not become tensors: texts and objects.
np_str_obj_array_pattern = re.compile(r"[SaUO]")


def default_convert(data: Any) -> Any:
    """Arrays and numpy's numbers as tensors, inside containers too; everything else as it is.

    Parameters
    ----------
    data : one sample.
    """
    if isinstance(data, (np.ndarray, np.generic)) and data.dtype.kind in "biuf":
        return as_tensor(np.asarray(data))
    if isinstance(data, Mapping):
        return _like(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(default_convert, data))
    if isinstance(data, tuple):
        return [default_convert(x) for x in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _like(data, [default_convert(x) for x in data])
    return data


def default_collate(batch: Any) -> Any:
    """A batch of samples: tensors stacked along a new first dimension, containers element by element.

    Parameters
    ----------
    batch : samples of the same structure: tensors, arrays, numbers, texts, or containers of them.

    Returns
    -------
    tensors or containers
        Arrays and numbers become tensors, Python's floats in float64; texts stay a list, or a tuple where they
        are part of a sample; other tuples become lists.

    Raises
    ------
    ArgumentError : a sample that is none of these, or containers of unequal lengths.
    ShapeError : tensors of unequal shapes.

    Examples
    --------
    >>> default_collate([(1.0, "a"), (2.0, "b")])
    [tensor([1., 2.], dtype=float64), ('a', 'b')]
    """
    given, batch = batch, list(batch)
    if not batch:
        raise ArgumentError("default_collate(): the batch is empty")
    first = batch[0]
    if isinstance(first, TensorBase):
        return stack(batch)
    if isinstance(first, (np.ndarray, np.generic)):
        if first.dtype.kind not in "biuf":
            raise ArgumentError(f"default_collate: arrays of {first.dtype} make no tensor; {_WANTED}")
        if any(np.shape(x) != first.shape for x in batch):
            raise ShapeError(
                f"stack expects each tensor to be equal size, but got {sorted({np.shape(x) for x in batch})}"
            )
        return tensor(np.stack(batch))
    if isinstance(first, float):
        return tensor(batch, dtype=float64)
    if isinstance(first, int):
        return tensor(batch)
    if isinstance(first, (str, bytes)):
        return given
    if isinstance(first, Mapping):
        return _like(first, {key: default_collate([sample[key] for sample in batch]) for key in first})
    if not isinstance(first, Sequence):
        raise ArgumentError(f"default_collate: {_WANTED}; found {type(first).__name__}")
    if any(len(sample) != len(first) for sample in batch):
        raise ArgumentError("each element in list of batch should be of equal size")
    columns = [default_collate(column) for column in zip(*batch)]
    if isinstance(first, tuple):
        return type(first)(*columns) if hasattr(first, "_fields") else columns
    return _like(first, columns)


_WANTED = "batch must contain tensors, numpy arrays, numbers, dicts or lists"


def _like(like: Any, items: Any) -> Any:
    """Items as a mapping or sequence of the class of another one, if that takes them."""
    try:
        return type(like)(items)
    except TypeError:
        return items
