"""Operators that read and write at indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from common.core.errors import ArgumentError
from common.core.op import REGISTRY
from common.ops import functional as F
from common.ops.math.cast import converted
from common.tools.onnx.applied import Applied, axis_of, is_known, meaning, of_tensors
from common.tools.onnx.host_values import arange, known, number, sizes, tensor

_INT = np.dtype(np.int64)


@meaning("Gather")
def _gather(a: Applied, x: Any, places: Any) -> Any:
    axis = axis_of(a.get("axis", 0), x.ndim, "axis")
    if is_known((x, places)):
        return np.take(x, places.astype(np.int64), axis)
    whole = (slice(None),) * axis
    if isinstance(places, np.ndarray) and places.ndim == 0 and places.dtype != object:
        return x[(*whole, int(places))]
    return tensor(x)[(*whole, tensor(places))]


def _counted(places: Any, n: Any) -> Any:
    """Indices counted from the front."""
    places = converted(places, _INT)
    return F.where(places < 0, places + n, places)


@of_tensors("GatherElements")
def _gather_elements(a: Applied, x: Any, places: Any) -> Any:
    axis = axis_of(a.get("axis", 0), x.ndim, "axis")
    return F.gather(x, axis, _counted(places, x.shape[axis]))


def _coordinates(places: Any, batch: int = 0) -> tuple[Any, ...]:
    """Index tensors, one for each element of the last dimension; before them the batch's own numbers."""
    depth = places.shape[-1]
    if type(depth) is not int:
        raise ArgumentError("how many dimensions are indexed depends on sizes")
    own = tuple(converted(F.select(places, places.ndim - 1, j), _INT) for j in range(depth))
    rank = places.ndim - 1
    front = []
    for d in range(batch):
        steps = [1] * rank
        steps[d] = places.shape[d]
        front.append(F.reshape(arange(places.shape[d]), steps))
    return (*front, *own)


@of_tensors("GatherND")
def _gather_nd(a: Applied, x: Any, places: Any) -> Any:
    return x[_coordinates(places, a.get("batch_dims", 0))]


@of_tensors("ScatterElements", "Scatter")
def _scatter(a: Applied, x: Any, places: Any, new: Any) -> Any:
    axis = axis_of(a.get("axis", 0), x.ndim, "axis")
    places = _counted(places, x.shape[axis])
    kind = a.get("reduction", "none")
    if kind in ("none", "add"):
        return (F.scatter_add if kind == "add" else F.scatter)(x, axis, places, new)
    return F.scatter_reduce(x, axis, places, new, {"mul": "prod", "max": "amax", "min": "amin"}[kind])


@of_tensors("ScatterND")
def _scatter_nd(a: Applied, x: Any, places: Any, new: Any) -> Any:
    if places.ndim == 1:
        places, new = F.unsqueeze(places, 0), F.unsqueeze(new, 0)
    kind, indices = a.get("reduction", "none"), _coordinates(places)
    if kind in ("none", "add"):
        return F.index_put(x, indices, new, kind == "add")
    return REGISTRY[f"index_{kind}{len(indices)}"](x, new, *indices, dim=0, wrap=True)


@meaning("OneHot")
def _one_hot(a: Applied, places: Any, depth: Any, values: Any) -> Any:
    places, values = tensor(places), tensor(values)
    n = int(number(depth, "the depth"))
    axis = axis_of(a.get("axis", -1), places.ndim + 1, "axis")
    steps = [1] * (places.ndim + 1)
    steps[axis] = n
    marked = F.eq(F.unsqueeze(_counted(places, n), axis), F.reshape(arange(n), steps))
    return F.where(marked, values[1], values[0])


@of_tensors("ReverseSequence")
def _reverse_sequence(a: Applied, x: Any, lengths: Any) -> Any:
    return reversed_rows(x, lengths, a.get("batch_axis", 1), a.get("time_axis", 0))


def reversed_rows(x: Any, lengths: Any, batch: int, time: int) -> Any:
    """The first `lengths` elements of each row in reverse order, the others as they are."""
    rank = x.ndim
    steps, rows = [1] * rank, [1] * rank
    steps[time], rows[batch] = x.shape[time], x.shape[batch]
    t = F.reshape(arange(x.shape[time]), steps)
    n = F.reshape(converted(lengths, _INT), rows)
    return F.gather(x, time, F.expand(F.where(t < n, n - 1 - t, t), tuple(x.shape)))


@meaning("NonZero")
def _nonzero(a: Applied, x: Any) -> Any:
    if isinstance(x, np.ndarray):
        return (
            np.stack(np.nonzero(np.atleast_1d(x))).astype(np.int64) if x.ndim else np.zeros((0, int(x != 0)), np.int64)
        )
    return F.permute(F.nonzero(x), (1, 0))


@meaning("Compress")
def _compress(a: Applied, x: Any, condition: Any) -> Any:
    places = np.flatnonzero(known(condition, "the condition"))
    axis = a.get("axis")
    x = tensor(x)
    if axis is None:
        return F.reshape(x, (-1,))[tensor(places)]
    return F.index_select(x, axis_of(axis, x.ndim, "axis"), tensor(places))


@meaning("Unique")
def _unique(a: Applied, x: Any) -> Any:
    array, axis = known(x, "the number of unique elements"), a.get("axis")
    values, first, inverse, counts = np.unique(array, True, True, True, axis=axis)
    order = np.arange(len(first))
    if not a.get("sorted", 1):
        order = np.argsort(first, kind="stable")
        values = np.take(values, order, 0 if axis is None else axis)
    back = np.argsort(order, kind="stable")
    return [values, first[order], back[inverse.reshape(-1)], counts[order]]


@meaning("CenterCropPad")
def _center_crop_pad(a: Applied, x: Any, shape: Any) -> Any:
    x = tensor(x)
    wanted = sizes(shape, "the shape")
    dims = [axis_of(d, x.ndim, "axis") for d in a.get("axes", list(range(x.ndim)))]
    for d, n in zip(dims, wanted, strict=True):
        more = n - x.shape[d]
        if more < 0:
            x = F.narrow(x, d, -more // 2, n)
        elif more > 0:
            x = F.pad(x, [0, 0] * (x.ndim - 1 - d) + [more // 2, more - more // 2])
    return x
