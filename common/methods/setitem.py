"""`x[key] = value`: as PyTorch, broadcasting and converting the value, with history where there is some to keep.

With history, or in a trace, the write is the functional op followed by rebinding x to its result; without, it goes
straight to the memory. Of several values for one place the last one in C order of the key's indices stays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from common.autograd.view_histories import in_windows, part_written, repeats, require_writable
from common.core import mode
from common.core.dtypes import bool_
from common.core.op import REGISTRY
from common.core.source_lines import user_frame, warn_user
from common.evaluate import specialise as eager
from common.methods.assign import assign, require_unprotected
from common.methods.in_place import has_history, run_in_place
from common.ops.basic_keys import hashable, is_plain, known_part, place
from common.ops.index.advanced_keys import Selection, as_keys, check_mask, integers, neighbours, take_apart
from common.ops.index.coordinates import family, index_get, index_set
from common.ops.index.masks import masked_fill, require_mask
from common.ops.index.written_values import as_value, at_indices, fitted
from common.ops.math.compare import where
from common.ops.reduce.truth import any as any_of
from common.ops.shape.slice_scatter import slice_set
from common.ops.shape.slices import picked
from common.ops.shape.view import expand, reshape
from common.ops.sort.data_dependent import elements
from common.tensor.base import TensorBase
from common.tensor.inference import refuse_write
from common.tensor.view_families import shows_writable
from common.tensor.write_log import is_shared, log_write, put


def setitem(self: TensorBase, key: Any, value: Any) -> None:
    """Write `value` to the elements that `key` selects.

    Parameters
    ----------
    key : what `getitem` takes. A mask in a traced program needs a value whose shape does not depend on it.
    value : number, array, nested list or tensor that broadcasts to the selected shape; converted to the tensor's dtype.

    Raises
    ------
    ShapeError : `value` does not broadcast to what is selected.
    IndexRangeError : an index outside its dimension; nothing is written then.
    GradientError : a leaf that requires grad, outside `no_grad`; or another tensor shows the memory that is written.
    TraceError : in a trace, a tensor that shares memory with a view, or a mask and a value that has its true elements.
    """
    keys = as_keys(key)
    selection = take_apart(self.shape, keys)
    if selection.basic is not None:
        place(self.shape, selection.basic)  # refuses what is outside
    v = as_value(value, self.dtype)
    if mode.inference_seen:
        refuse_write(self, "setitem")
    if v.ndim == 0 and selection.basic is None and selection.placed and repeats(self):
        mask = _lone_mask(self, selection)
        if mask is not None:
            fill_masked(self, _aligned(self, *mask), v)
        else:
            fill_masked(self, _written(falses(self.shape), selection, as_value(True, bool_)), v, "index_put")
        return
    if has_history(self, v):
        if _write_recorded(self, selection, v):
            return
        name = "index_put" if selection.placed else "slice_scatter"
        if mode.current_trace() is not None and not selection.chosen and (repeats(self) or in_windows(self)):
            part = selection.part(self)  # may show each element once, where all of the tensor does not
            one = v.ndim == 0 and not selection.placed
            assign(part, _written(part, Selection(None, [], selection.placed), v), "fill" if one else name)
            return
        assign(self, _written(self, selection, v), name, _part_of(self, selection))
    else:
        part = _part(self.payload, selection)
        if not (part.flags.writeable or is_shared(part)) and shows_writable(self):
            part = part[...]  # numpy locks what was expanded; this part of it repeats nothing
            part.flags.writeable = True
        _write(part, selection, v)
        log_write(part, *user_frame(2))


def falses(shape: Any) -> Any:
    """False everywhere."""
    return expand(as_value(False, bool_), shape)


def fill_masked(x: TensorBase, mask: Any, value: Any, name: str = "masked_fill") -> TensorBase:
    """Write a number where `mask` holds; in memory that several elements show, where it holds for one of them."""
    dims = repeats(x)
    if dims:
        example = "tensor[indices] = tensor" if name == "index_put" else "tensor[mask] = scalar"
        warn_user(
            f"Use of {name}_ on expanded tensors is deprecated. Please clone() the tensor before performing this "
            f"operation. This also applies to advanced indexing e.g. {example}"
        )
        require_mask("masked_fill", mask)
        mask = expand(any_of(expand(mask, x.shape), dims, keepdim=True), x.shape)
    return assign(x, masked_fill(x, mask, value), "masked_fill")


def _part(array: np.ndarray, selection: Selection) -> np.ndarray:
    """The view of the memory that the basic key selects."""
    if selection.basic is None:
        return array
    whole = () if any(k is Ellipsis for k in selection.basic) else (...,)  # keeps a 0-d part an array
    part: np.ndarray = array[(*selection.basic, *whole)]
    return part


def _part_of(x: TensorBase, selection: Selection) -> Any:
    """How `assign` finds the memory that is written."""
    return None if selection.basic is None else lambda array: _part(array, selection)


# ------------------------------------------------------------------ without history: to the memory


def _write(part: np.ndarray, selection: Selection, v: Any) -> None:
    if not selection.placed:
        put(part, fitted(v, part.shape).payload)
        return
    mask = _lone_mask(part, selection)
    spread = None if mask is None else _over_mask(part, *mask, v)
    if mask is not None and spread is not None:
        chosen = _aligned(part, *mask)
        put(part, eager.run(REGISTRY["where"], (chosen.payload, spread.payload, part), {}))
        return
    indices, dim = neighbours(part.shape, integers(part, selection.placed))
    v = at_indices(part.shape, indices, dim, v)
    arrays = [x.payload if isinstance(x, TensorBase) else x for x in (v, *indices)]
    run_in_place(family(len(indices))["index_set"], part, arrays, {"dim": dim, "wrap": True})


# ------------------------------------------------------------------ with history: a new value


def with_written(x: Any, key: Any, value: Any) -> Any:
    """x with a value at what a key selects, as `setitem` writes it."""
    return _written(x, take_apart(x.shape, as_keys(key)), as_value(value, x.dtype))


def _written(x: Any, selection: Selection, v: Any) -> Any:
    """x with the value in its place."""
    if selection.chosen:
        return _chosen(x, selection, v)
    if selection.basic is None and not selection.placed:
        return expand(fitted(v, x.shape), x.shape)
    new = _part_written(selection.part(x), selection, v) if selection.placed else v
    if selection.basic is None:
        return new
    starts, sizes, steps, dims = place(x.shape, selection.basic)
    shape = sizes if dims is None else picked(sizes, dims)
    new = expand(fitted(new, shape), shape)
    return slice_set(x, reshape(new, sizes), starts=starts, steps=steps)


def _part_written(part: Any, selection: Selection, v: Any) -> Any:
    mask = _lone_mask(part, selection)
    spread = None if mask is None else _over_mask(part, *mask, v)
    if mask is not None and spread is not None:
        chosen = _aligned(part, *mask)
        return where(chosen, spread, part)
    if mask is not None:
        elements(mask[1], "setitem", "give the value the shape of x and write where(mask, value, x)")
    indices, dim = neighbours(part.shape, integers(part, selection.placed))
    return index_set(part, at_indices(part.shape, indices, dim, v), indices, dim)


def _write_recorded(x: Any, selection: Selection, v: Any) -> bool:
    """Write a part and record that, without a copy of the whole; whether that was done, which a trace cannot have."""
    basic, array = selection.basic, x.payload
    if mode.tracing or basic is None or selection.placed or selection.chosen or not is_plain(basic):
        return False
    if type(array) is not np.ndarray or type(v.payload) is not np.ndarray:
        return False
    part = _part(array, selection)
    if v.shape != part.shape:
        v = expand(fitted(v, part.shape), part.shape)
    require_unprotected(x, "slice_scatter")
    require_writable(x, "slice_scatter")
    put(part, v.payload)
    log_write(part, *user_frame(3))
    op, attrs = known_part(array.shape, hashable(basic))
    part_written(x, v, ((op.name, tuple(attrs.items())),), "slice_scatter")
    return True


def _chosen(x: Any, selection: Selection, v: Any) -> Any:
    """Traced 0-d indices select like ints: a write to one is a write to a dimension of one index."""
    part = Selection(selection.basic, [], []).part(x)
    steps = [part]
    for dim, index in selection.chosen:
        steps.append(index_get(steps[-1], (index,), dim))
    new = _part_written(steps[-1], selection, v) if selection.placed else v
    new = expand(fitted(new, steps[-1].shape), steps[-1].shape)
    for (dim, index), whole in zip(reversed(selection.chosen), steps[-2::-1], strict=True):
        new = index_set(whole, new, (index,), dim)
    return new if selection.basic is None else _written(x, Selection(selection.basic, [], []), new)


def _lone_mask(part: Any, selection: Selection) -> tuple[int, Any] | None:
    """Dimension and mask, if a mask is the key's only index."""
    if len(selection.placed) != 1 or selection.placed[0][1].dtype.kind != "b":
        return None
    check_mask(part.shape, *selection.placed[0])
    return selection.placed[0]


def _aligned(part: Any, dim: int, mask: Any) -> Any:
    """The mask with dimensions of size 1 after its own, so that it broadcasts with `part`."""
    return reshape(mask, (*mask.shape, *(1,) * (part.ndim - dim - mask.ndim)))


def _over_mask(part: Any, dim: int, mask: Any, v: Any) -> Any:
    """`v` broadcast over the mask's dimensions; None if it has one element per true element of the mask."""
    inner = part.ndim - dim - mask.ndim
    if v.ndim > inner:
        at = v.ndim - inner - 1
        if not (isinstance(v.shape[at], int) and v.shape[at] == 1):
            return None
        v = fitted(reshape(v, (*v.shape[:at], *v.shape[at + 1 :])), (*part.shape[:dim], *part.shape[dim + mask.ndim :]))
        before = v.ndim - inner
        return reshape(v, (*v.shape[:before], *(1 for _ in mask.shape), *v.shape[before:])) if before > 0 else v
    return fitted(v, part.shape[part.ndim - inner :])
