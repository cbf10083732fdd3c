"""``x[key]`` by a key of tensors among slices, numbers, None and Ellipsis, such as ``x[:, i]`` and ``x[mask, 0]``."""

from __future__ import annotations

from typing import Any

import numpy as np

from common.core.unbroadcast import INTS
from common.evaluate import specialise as eager
from common.ops import functional
from common.ops.index.coordinates import index_get
from common.ops.sort.data_dependent import positions
from common.tensor.base import Tensor, wrap
from dynamic.eager.remembered import Memory

_LIMIT = 4096
_memory = Memory()
#: Names of keys, by what they have between tensors; and such keys by their names.
_patterns: dict[Any, str] = {}
_keys: dict[str, tuple[Any, ...]] = {}
_BOUNDS = {int, type(None)}


def at(x: Tensor, key: tuple[Any, ...]) -> Any:
    """``x[key]``; NotImplemented where neither a short way is known nor a line remembered.

    A line is remembered by the tensors of a key, and by what stands between them.
    """
    tensors: list[Tensor] = []
    entries: list[Any] = []
    for k in key:
        if type(k) is list and k and INTS.issuperset(map(type, k)):
            k = wrap(np.array(k, np.int64))
        if type(k) is Tensor:
            tensors.append(k)
            entries.append(Tensor)
        elif type(k) is slice and _BOUNDS.issuperset((type(k.start), type(k.stop), type(k.step))):
            entries.append((k.start, k.stop, k.step))
        elif type(k) in _BOUNDS or k is Ellipsis:
            entries.append(k)
        else:
            return NotImplemented
    if len(tensors) == 1 and (mask := tensors[0].payload).dtype == bool:
        return _at_mask(x, key, mask, entries.index(Tensor))
    known = tuple(entries)
    pattern = _patterns.get(known)
    if pattern is None:
        if len(_patterns) >= _LIMIT:
            return NotImplemented
        pattern = repr(known)  # of no other key, also where threads name theirs at the same time
        _keys[pattern] = tuple([slice(*k) if type(k) is tuple else k for k in entries])
        _patterns[known] = pattern
    arguments = x, tuple(tensors), pattern
    y = eager.recalled(_memory, *arguments)
    return _memory.meet(arguments, _at_pattern) if y is None else y


def _at_pattern(x: Any, tensors: tuple[Any, ...], pattern: str) -> Any:
    """``x[key]`` by the tensors of a key, and the name of what stands between them."""
    left = iter(tensors)
    return functional.getitem(x, tuple([next(left) if k is Tensor else k for k in _keys[pattern]]))


def _at_mask(x: Any, key: tuple[Any, ...], mask: Any, place: int) -> Any:
    """``x[key]`` with one mask of one dimension; its elements vary, so nothing is remembered."""
    if type(mask) is not np.ndarray or mask.ndim != 1 or Ellipsis in [k for k in key[:place] if type(k) is not slice]:
        return NotImplemented
    dim = sum(type(k) is not int for k in key[:place])
    part = x[(*key[:place], slice(None), *key[place + 1 :])]
    if part.ndim <= dim or part.shape[dim] != len(mask):
        return NotImplemented
    return index_get(part, [wrap(positions(mask)[0])], dim)


__all__ = ["at"]
