"""Keys that hold data: integer tensors, masks, and the place of their dimensions in the result, as in PyTorch.

A key is taken apart into a basic one (`common.ops.basic_keys`) and indices of dimensions of what that leaves. Integers,
0-d tensors too, are basic: they select before the indices are looked at, so ``x[0, :, i]`` is ``x[0][:, i]``. Indices
broadcast together. If their dimensions are neighbours, the indices' shape stands where they stood, else in front.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from common.core import mode
from common.core.allocation import MOST_ROWS, refuse_endless
from common.core.dtypes import bool_, int64, uint8
from common.core.errors import IndexKindError, IndexRangeError, ShapeError
from common.core.shapes import broadcast_shapes
from common.core.sizes import Dim, same
from common.core.source_lines import warn_user
from common.ops.basic_keys import basic as at_basic_key
from common.ops.basic_keys import bound, is_plain
from common.ops.create.creation import arange_
from common.ops.index.coordinates import INDEX_DTYPES, index_get
from common.ops.math.cast import converted
from common.ops.shape.view import reshape
from common.ops.sort.data_dependent import elements, known_elements, positions
from common.tensor.base import TensorBase
from common.tensor.create import lift, operand

_INSTEAD = (
    "keep the shape with where(mask, x, 0), x * mask or masked_fill(x, ~mask, 0) and then sum, or index outside and "
    "pass the result in"
)


class Selection(NamedTuple):
    """A key taken apart.

    Attributes
    ----------
    basic : the key of ints, slices, None and Ellipsis; None if it selects everything as it is.
    chosen : dimensions that a traced 0-d index takes away, and that index, from the last on.
    placed : dimensions of what is left then, and the index or mask (which takes several) that belongs to each.
    """

    basic: tuple[Any, ...] | None
    chosen: list[tuple[int, Any]]
    placed: list[tuple[int, Any]]

    def part(self, x: Any) -> Any:
        """Read the part of x that the basic key and the chosen indices give."""
        if self.basic is not None:
            x = at_basic_key(x, self.basic)
        for dim, index in self.chosen:
            x = index_get(x, (index,), dim)
        return x


def as_keys(key: Any) -> tuple[Any, ...]:
    """The entries of a key. A list that holds more than numbers is one entry per item, as in PyTorch."""
    if isinstance(key, tuple):
        return key
    if type(key) is list and len(key) < 32 and any(map(_is_entry, key)):
        return tuple(key)
    return (key,)


def _is_entry(k: Any) -> bool:
    """Whether something in a list shows that the list is a key, not an index."""
    return k is None or k is Ellipsis or isinstance(k, (list, tuple, slice, TensorBase, np.ndarray))


def take_apart(shape: tuple[Any, ...], keys: tuple[Any, ...]) -> Selection:
    """Separate the basic part of a key from the rest.

    Parameters
    ----------
    shape : of what is indexed.

    Raises
    ------
    IndexRangeError : too many indices, or more than one ellipsis.
    IndexKindError : something that does not index.
    """
    if 0 < len(keys) <= len(shape) and isinstance(keys[0], TensorBase):  # by far the commonest
        if all(isinstance(k, TensorBase) and k.dtype in INDEX_DTYPES and k.ndim > 0 for k in keys):
            return Selection(None, [], [*enumerate(keys)])
    elif is_plain(keys):
        return Selection(keys, [], [])
    entries = [_entry(k) for k in keys]
    if sum(k is Ellipsis for k in entries) > 1:
        raise IndexRangeError("an index can only have a single ellipsis ('...')")
    used = sum(_width(k) for k in entries)
    if used > len(shape):
        raise IndexRangeError(f"too many indices for tensor of dimension {len(shape)}")
    basic: list[Any] = []
    found: list[tuple[int, Any]] = []
    at = own = 0  # dimensions of what the basic key leaves, and of x
    for k in entries:
        if isinstance(k, np.ndarray):
            check_mask(shape, own, k)
            k = lift(positions(k)[0])
        own += len(shape) - used if k is Ellipsis else _width(k)
        if isinstance(k, np.bool_):  # a new dimension, of which everything or nothing is taken
            found.append((at, lift(np.zeros(int(k), np.int64))))
            basic.append(None)
            at += 1
        elif isinstance(k, TensorBase):
            found.append((at, k))
            basic += [slice(None)] * _width(k)
            at += _width(k)
        else:
            basic.append(k)
            at += len(shape) - used if k is Ellipsis else 0 if isinstance(k, (int, np.integer, Dim)) else 1
    everything = all(k is Ellipsis or (isinstance(k, slice) and k == slice(None)) for k in basic)
    chosen = [(dim, k) for dim, k in found if k.ndim == 0]
    placed = [(dim - sum(d < dim for d, _ in chosen), k) for dim, k in found if k.ndim > 0]
    return Selection(None if everything else tuple(basic), chosen[::-1], placed)


def _entry(k: Any) -> Any:
    """An entry of a key in its simplest form: basic, a numpy bool for a truth value, or a tensor."""
    if isinstance(k, slice):
        return slice(bound(k.start), bound(k.stop), bound(k.step))
    if k is None or k is Ellipsis or isinstance(k, Dim):
        return k
    if isinstance(k, (bool, np.bool_)):
        return np.bool_(k)
    if isinstance(k, (int, np.integer)):
        return int(k)
    if isinstance(k, (list, tuple, range)):
        return _of_sequence(k)
    if not isinstance(k, (TensorBase, np.ndarray)):
        if hasattr(type(k), "__index__"):
            return operator.index(k)
        raise IndexKindError(
            "tensors are indexed with ints, slices, None, Ellipsis, bools, integer tensors and masks, not "
            f"{type(k).__name__}"
        )
    index = operand(k)
    if index.dtype == uint8:
        warn_user("indexing with dtype uint8 is deprecated: it is a mask, as in PyTorch; give one of dtype bool")
        index = converted(index, bool_)
    if index.ndim == 0 and index.dtype.kind == "i":
        index = converted(index, int64)
    if index.dtype not in INDEX_DTYPES and index.dtype != bool_:
        raise IndexKindError(f"tensors used as indices must be int64, int32 or bool tensors, not {index.dtype}")
    if index.ndim == 0:
        if index.dtype.kind == "b":
            return np.bool_(elements(index, "getitem", _INSTEAD))
        known = known_elements(index)
        return index if known is None else int(known)
    return index


def _of_sequence(k: Sequence[Any]) -> Any:
    """A list of ints, bools or tensors as one index; its elements are known while a program is traced."""
    if isinstance(k, range):
        refuse_endless("getitem", (max((k.stop - k.start) // k.step, 0),), MOST_ROWS)  # len() counts to 2^63
    if any(isinstance(x, TensorBase) for x in k):
        from common.ops.shape.cat import stack

        return _entry(stack([operand(x) for x in k]))
    array = np.array(k, np.int64) if len(k) == 0 else np.array(k)
    return array if array.dtype.kind == "b" and array.ndim == 1 else _entry(lift(array))


def _width(k: Any) -> int:
    """How many dimensions an entry takes."""
    if k is None or k is Ellipsis or isinstance(k, np.bool_):
        return 0
    return k.ndim if isinstance(k, TensorBase) and k.dtype.kind == "b" else 1


def integers(part: Any, placed: Sequence[tuple[int, Any]]) -> list[tuple[int, Any]]:
    """Dimensions and integer indices: each mask becomes the indices of its true elements.

    Raises
    ------
    IndexRangeError : a mask does not have the sizes of the dimensions it takes.
    TraceError : the elements of a mask exist only when the program runs.
    """
    out = []
    for dim, index in placed:
        if index.dtype.kind != "b":
            out.append((dim, index))
            continue
        check_mask(part.shape, dim, index)
        mask = elements(index, "getitem", _INSTEAD)
        out += [(dim + axis, lift(where)) for axis, where in enumerate(positions(mask))]
    return out


def check_mask(shape: tuple[Any, ...], dim: int, mask: Any) -> None:
    """Refuse a mask that does not fit the dimensions from `dim` on."""
    for axis, n in enumerate(mask.shape):
        extent = shape[dim + axis]
        if not same(n, extent) and n != extent:
            raise IndexRangeError(
                f"The shape of the mask {list(mask.shape)} at index {axis} does not match the shape of the indexed "
                f"tensor {list(shape)} at index {dim + axis}"
            )


def neighbours(shape: tuple[Any, ...], placed: Sequence[tuple[int, Any]]) -> tuple[list[Any], int]:
    """The indices of neighbouring dimensions, and the first of these.

    Where dimensions lie between, all up to the last one are indexed, those by counting, and the result has the shape of
    the indices in front.
    """
    indices = [index for _, index in placed]
    try:
        broadcast_shapes(*(i.shape for i in indices), op="indices")
    except ShapeError as error:
        message = f"shape mismatch: indexing tensors could not be broadcast together: {error}"
        raise IndexKindError(message) from None
    first, last = placed[0][0], placed[-1][0]
    if last - first + 1 == len(placed):
        return indices, first
    by_dim = dict(placed)
    gaps = [dim for dim in range(last + 1) if dim not in by_dim]
    out = []
    for dim in range(last + 1):
        if dim in by_dim:
            index = by_dim[dim]
            out.append(reshape(index, (*index.shape, *(1 for _ in gaps))))
        else:
            out.append(along(shape[dim], sum(gap > dim for gap in gaps)))
    return out, 0


def along(n: Any, after: int) -> Any:
    """0, 1, ..., n - 1 before `after` dimensions of size 1."""
    trace = mode.current_trace()
    attrs = {"start": 0, "step": 1, "count": n}
    row = lift(np.arange(n)) if trace is None else trace.wrap(trace.record(arange_, (), attrs))
    return reshape(row, (n, *(1,) * after))


def read(x: Any, keys: tuple[Any, ...]) -> Any:
    """`x` at a key of any kind; see `common.ops.index.getitem.getitem`."""
    selection = take_apart(x.shape, keys)
    part = selection.part(x)
    if selection.placed:
        indices, dim = neighbours(part.shape, integers(part, selection.placed))
        return index_get(part, indices, dim)
    trace = mode.current_trace()
    if selection.chosen and trace is not None:
        trace.note_alias(part, x)
    return part

__all__: list[str] = []
