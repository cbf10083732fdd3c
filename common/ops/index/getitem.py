"""Indexing: `x[key]` for keys of any kind."""

from __future__ import annotations

from typing import Any

from common.ops.basic_keys import basic, is_basic, is_plain
from common.ops.index.advanced_keys import as_keys, read
from common.ops.index.coordinates import INDEX_DTYPES, index_get
from common.tensor.base import TensorBase


def getitem(x: Any, key: Any) -> Any:
    """`x[key]`, as in PyTorch.

    Ints, slices with positive steps, None and Ellipsis give views. Integer tensors, arrays and lists, and masks give
    new tensors; see `common.ops.index.advanced_keys` for the place of their dimensions. Negative indices count from
    the end. While a program is traced, a mask is refused: the shape would depend on its elements.

    Raises
    ------
    ArgumentError, DTypeError : another kind of index, or a step that is not positive.
    IndexRangeError : an index outside its dimension, too many indices, or a mask of the wrong sizes.
    ShapeError : indices that do not broadcast together.
    TraceError : a mask, while a program is traced.
    """
    if isinstance(key, TensorBase) and key.dtype in INDEX_DTYPES and key.ndim > 0 and x.ndim > 0:
        return index_get(x, (key,), 0)
    keys = key if isinstance(key, tuple) else as_keys(key)
    return basic(x, keys) if is_plain(keys) or all(map(is_basic, keys)) else read(x, keys)


__all__ = ["getitem"]
