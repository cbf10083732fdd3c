"""``x[key]`` and writes there, by a key of tensors among slices, numbers, None and Ellipsis, such as ``x[:, i]``."""

from __future__ import annotations

from typing import Any

import numpy as np

from common.core.unbroadcast import INTS
from common.evaluate import specialise as eager
from common.methods.setitem import with_written
from common.ops import functional
from common.ops.index.coordinates import index_get
from common.ops.sort.data_dependent import positions
from common.tensor.base import Tensor, wrap
from dynamic.eager.remembered import Memory
from dynamic.eager.writing_kernels import Ways, free

_LIMIT = 4096
_memory, _new_values = Memory(), Memory()
#: Names of keys, by what they have between tensors; and such keys by their names.
_patterns: dict[Any, str] = {}
_keys: dict[str, tuple[Any, ...]] = {}
_WHOLE = None, None, None
_BOUNDS = {int, type(None)}


def at(x: Tensor, key: tuple[Any, ...]) -> Any:
    """``x[key]``; NotImplemented where neither a short way is known nor a line remembered.

    A line is remembered by the tensors of a key, and by what stands between them.
    """
    if (found := _apart(key)) is None:
        return NotImplemented
    tensors, entries = found
    if len(tensors) == 1 and (mask := tensors[0].payload).dtype == bool:
        return _at_mask(x, key, mask, entries.index(Tensor))
    if (pattern := _name(entries)) is None:
        return NotImplemented
    arguments = x, tuple(tensors), pattern
    y = eager.recalled(_memory, *arguments)
    return _memory.meet(arguments, _at_pattern) if y is None else y


def write_at(x: Tensor, key: Any, value: Any) -> bool:
    """``x[key] = value`` straight to the memory, not logged; whether that was done."""
    array = free(x)
    if array is None or (found := _of_write(key, value)) is None:
        return False
    tensors, pattern = found
    return bool(_writes.wrote(array, (x,), (tensors, value, pattern), {}))


def written(x: Tensor, key: Any, value: Any) -> Any:
    """`x` with a value at what a key selects, by a line that is remembered; NotImplemented where there is none."""
    if (found := _of_write(key, value)) is None:
        return NotImplemented
    tensors, pattern = found
    arguments = x, tensors, value, pattern
    y = eager.recalled(_new_values, *arguments)
    return _new_values.meet(arguments, _written) if y is None else y


def _of_write(key: Any, value: Any) -> tuple[tuple[Tensor, ...], str] | None:
    """The tensors of a key and the name of what stands between them; None if what is done depends on more."""
    if (found := _apart(key if type(key) is tuple else (key,))) is None:
        return None
    if type(value) is Tensor and value.payload.shape and any(z.payload.dtype == bool for z in found[0]):
        return None  # its shape may be that of the elements where the mask holds, which varies
    pattern = _name(found[1])
    return None if pattern is None else (tuple(found[0]), pattern)


def _learnt(function: Any, operands: Any, options: Any, array: Any) -> Any:
    from dynamic.eager import writing_lines

    return writing_lines.in_place(function, operands, options, may_copy=False)


def _written(x: Any, tensors: tuple[Any, ...], value: Any, pattern: str) -> Any:
    """x with a value at what the tensors of a key select, and the name of what stands between them."""
    return with_written(x, _key(tensors, pattern), value)


_writes = Ways(_written, _learnt)


def _apart(key: tuple[Any, ...]) -> tuple[list[Tensor], list[Any]] | None:
    """The tensors of a key, and what it is, the class in place of a tensor; None of one with other entries."""
    tensors: list[Tensor] = []
    entries: list[Any] = []
    for k in key:
        kind = type(k)
        if kind is list and k and INTS.issuperset(map(type, k)):
            k, kind = wrap(np.array(k, np.int64)), Tensor
        if kind is Tensor:
            tensors.append(k)
            entries.append(Tensor)
        elif kind is slice:
            bounds = k.start, k.stop, k.step
            if bounds != _WHOLE and not _BOUNDS.issuperset(map(type, bounds)):
                return None
            entries.append(bounds)
        elif kind in _BOUNDS or k is Ellipsis:
            entries.append(k)
        else:
            return None
    return tensors, entries


def _name(entries: list[Any]) -> str | None:
    """The name of a key; None where there are too many."""
    known = tuple(entries)
    pattern = _patterns.get(known)
    if pattern is None:
        if len(_patterns) >= _LIMIT:
            return None
        pattern = repr(known)  # of no other key, also where threads name theirs at the same time
        _keys[pattern] = tuple([slice(*k) if type(k) is tuple else k for k in entries])
        _patterns[known] = pattern
    return pattern


def _key(tensors: tuple[Any, ...], pattern: str) -> tuple[Any, ...]:
    left = iter(tensors)
    return tuple([next(left) if k is Tensor else k for k in _keys[pattern]])


def _at_pattern(x: Any, tensors: tuple[Any, ...], pattern: str) -> Any:
    """``x[key]`` by the tensors of a key, and the name of what stands between them."""
    return functional.getitem(x, _key(tensors, pattern))


def _at_mask(x: Any, key: tuple[Any, ...], mask: Any, place: int) -> Any:
    """``x[key]`` with one mask of one dimension; its elements vary, so nothing is remembered."""
    if type(mask) is not np.ndarray or mask.ndim != 1 or Ellipsis in [k for k in key[:place] if type(k) is not slice]:
        return NotImplemented
    dim = sum(type(k) is not int for k in key[:place])
    part = x[(*key[:place], slice(None), *key[place + 1 :])]
    if part.ndim <= dim or part.shape[dim] != len(mask):
        return NotImplemented
    return index_get(part, [wrap(positions(mask)[0])], dim)


__all__ = ["at", "write_at", "written"]
