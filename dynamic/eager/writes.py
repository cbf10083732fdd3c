"""The short path of `x[key] = value`, with history and without: it finds the view to be written by its key."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from common.autograd.view_histories import note_history, stands_alone, write_recipe
from common.core import mode
from common.core.op import rules_changed
from common.core.source_lines import user_files, user_frame
from common.evaluate.kernels import filled
from common.evaluate.kinds import number
from common.evaluate.native_results import overwrite
from common.evaluate.specialise import Recipe
from common.methods.assign import assign
from common.methods.in_place import has_history
from common.methods.setitem import setitem
from common.tensor import boundary
from common.tensor.base import InferenceTensor, Tensor, TensorBase
from common.tensor.leaf import Leaf
from common.tensor.node import Node
from common.tensor.view_families import Family, is_recorded
from common.tensor.write_log import log_write, read_first
from dynamic.eager.views import SMALL, keys_among_slices, known_key, parts, recent_parts

general = boundary.guarded(setitem, "__setitem__")
_getframe = sys._getframe
_grad_enabled = mode.grad_mode.get
_LIMIT = 4096

#: Per recipe of a view, the recipe that records a write to it.
_writes: dict[Recipe, Recipe] = {}
rules_changed.append(lambda op: _writes.clear())


def _write_of(found: Recipe, part: np.ndarray) -> Recipe:
    """The recipe for a recorded write to what a view shows."""
    if len(_writes) >= _LIMIT:
        _writes.clear()
    made = _writes[found] = write_recipe(found, part)
    return made


def _is_alone(x: Any) -> bool:
    """Whether a write to a tensor concerns its own place on the tape only: no leaf, no views, and nobody listens."""
    node, family = x.grad_fn, getattr(x, "_family", None)
    if type(x) is not Tensor or (x._requires_grad if node is None else hasattr(node, "_hooks")):
        return False
    if type(family) is not Family:
        return family is None
    return not family.opaque and not any(view() is not None for view in family.views)


def _record_write(x: Any, edge: Any, found: Recipe, part: np.ndarray, frame: Any) -> None:
    """Give a tensor the place of a copy in which a part has been overwritten."""
    write = _writes.get(found) or _write_of(found, part)
    place = (frame.f_code, frame.f_lasti) if frame.f_code.co_filename in user_files else user_frame(3)
    node = Node(write.op, write.attrs, (x.edge, edge), (), write.forms, *place)
    node.backward = write.backward
    note_history(x)
    x.grad_fn, x.output_nr, x._requires_grad = node, 0, True


def _is_written_at(self: Any, x: np.ndarray, key: Any, value: Any) -> bool:
    """Write few elements where nothing is recorded, at a mask or at places by number; whether that was done."""
    if type(key) is Tensor:
        k = places = key.payload
    else:
        places = tuple([k.payload for k in key])
        k = places[0]
    if not x.flags.writeable or (_grad_enabled() and is_recorded(self)):
        return False
    if (type(value) is float or type(value) is int) and x.dtype.kind == "f":
        v = number(value, x.dtype)
    elif type(value) is Tensor and (v := value.payload).dtype == x.dtype:
        if (value._requires_grad and _grad_enabled()) or np.may_share_memory(x, v):
            return False
    else:
        return False
    if k.dtype == bool:
        if places is not k or k.shape != x.shape or v.ndim > 1 or k.size > SMALL:
            return False
        if not v.ndim:
            np.putmask(x, k, v)
        elif v.size and np.count_nonzero(k) == v.size:
            np.place(x, k, v)
        else:
            return False
        return True
    if k.dtype != np.int64 or k.ndim != 1 or not x.ndim:
        return False
    rest = x.shape[1:] if places is k else x.shape[len(places) :]
    if places is not k and (x.ndim < len(places) or {(p.shape, p.dtype) for p in places} != {(k.shape, k.dtype)}):
        return False
    if (v.ndim and v.shape != (len(k), *rest)) or len(k) * math.prod(rest) > SMALL:
        return False
    try:
        x[places] = v
    except IndexError:
        return False
    return True


def _setitem(self: Any, key: Any, value: Any) -> None:
    """`x[key] = value`; the short path is a write of a number, or a tensor of the same dtype."""
    x = self.payload
    known = key if type(key) is int else known_key(key)
    if mode.tracing or known is None or type(x) is not np.ndarray:
        if type(x) is np.ndarray and not mode.tracing and (type(key) is Tensor or type(key) is tuple):
            alone = type(key) is Tensor or {*map(type, key)} == {Tensor}
            if (alone and _is_written_at(self, x, key, value)) or keys_among_slices().write_at(self, key, value):
                return log_write(x, *user_frame(2))
            if _grad_enabled() and stands_alone(self) and has_history(self, value):
                y = keys_among_slices().written(self, key, value)
                if y is not NotImplemented:
                    assign(self, y, "index_put")
                    return None
        return general(self, key, value)
    recorded, edge = is_recorded(self), None
    if isinstance(value, TensorBase):
        v = value.payload
        if type(v) is not np.ndarray or v.dtype != x.dtype:
            return general(self, key, value)
        if value._requires_grad:
            recorded, edge = True, value.edge
    elif (type(value) is float or type(value) is int) and x.dtype.kind == "f":
        v = number(value, x.dtype)
    else:
        return general(self, key, value)
    if recorded and (recorded := _grad_enabled()) and not _is_alone(self):
        return general(self, key, value)
    try:
        way = recent_parts.get(known)
    except TypeError:  # a slice by what has no hash
        return general(self, key, value)
    found: Any
    part, found = (None, None) if way is None else (way[0](x), way[1])
    if part is None:
        part, found = parts.part(x, known, key)
        if part is None:
            return general(self, key, value)
    if recorded and edge is not None and v.shape != part.shape:
        return general(self, key, value)
    try:
        if not filled(part, v):
            overwrite(part, read_first(part, v))
    except ValueError:  # a shape that does not fit, or that numpy does not take
        return general(self, key, value)
    frame = _getframe(1)
    log_write(part, frame.f_code, frame.f_lasti)
    if recorded:
        _record_write(self, edge, found, part, frame)
    return None


for _class, _method in ((Tensor, _setitem), (Leaf, _setitem), (InferenceTensor, general)):
    setattr(_class, "__setitem__", _method)  # noqa: B010  a type checker takes the assignment for an element's
