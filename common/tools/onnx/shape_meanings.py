"""Operators on shapes: what arithmetic of sizes is made of, and what moves elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from common.core.errors import ArgumentError, TraceError
from common.core.sizes import Dim
from common.core.spec import numel
from common.ops import functional as F
from common.ops.math.cast import converted
from common.tools.onnx.applied import Applied, axis_of, is_known, meaning, of_tensors, shape_of
from common.tools.onnx.host_values import (
    arange,
    as_sizes,
    eye,
    full,
    number,
    require_room,
    settled,
    sizes,
    small,
    tensor,
)
from common.tools.onnx.records import dtype_of

_END = 2**31 - 1
"""The number that stands for the end of a dimension in slices, or more."""


@meaning("Shape")
def _shape(a: Applied, x: Any) -> Any:
    start, end = a.get("start", 0), a.get("end")
    return as_sizes(shape_of(x)[start:end])


@meaning("Size")
def _size(a: Applied, x: Any) -> Any:
    return settled(np.asarray(numel(tuple(shape_of(x))), object))


@meaning("Reshape")
def _reshape(a: Applied, x: Any, shape: Any = None) -> Any:
    wanted = a.get("shape", []) if shape is None else sizes(shape, "the shape")
    if not a.get("allowzero", 0):
        if any(type(n) is int and n == 0 and i >= x.ndim for i, n in enumerate(wanted)):
            raise ArgumentError(f"the shape {wanted} copies a size that {list(x.shape)} does not have")
        wanted = [x.shape[i] if type(n) is int and n == 0 else n for i, n in enumerate(wanted)]
    if isinstance(x, np.ndarray) and all(type(n) is int for n in wanted):
        return x.reshape(wanted)
    return F.reshape(tensor(x), tuple(wanted))


@meaning("Flatten")
def _flatten(a: Applied, x: Any) -> Any:
    x = tensor(x)
    axis = a.get("axis", 1)
    axis = axis + x.ndim if axis < 0 else axis
    return F.reshape(x, (numel(x.shape[:axis]), numel(x.shape[axis:])))


@meaning("Transpose")
def _transpose(a: Applied, x: Any) -> Any:
    order = a.get("perm") or list(range(x.ndim))[::-1]
    return np.transpose(x, order) if isinstance(x, np.ndarray) else F.permute(x, tuple(order))


@meaning("Squeeze")
def _squeeze(a: Applied, x: Any, axes: Any = None) -> Any:
    listed = a.get("axes") if axes is None else sizes(axes, "axes")
    if listed is None:
        listed = [d for d, n in enumerate(x.shape) if type(n) is int and n == 1]
    dims = {axis_of(int(d), x.ndim, "axis") for d in listed}
    if any(not isinstance(x.shape[d], Dim) and x.shape[d] != 1 for d in dims):
        raise ArgumentError(f"dimensions {sorted(dims)} of {list(x.shape)} are not all 1")
    return _with_sizes(x, [n for d, n in enumerate(x.shape) if d not in dims])


@meaning("Unsqueeze")
def _unsqueeze(a: Applied, x: Any, axes: Any = None) -> Any:
    listed = a.need("axes", list) if axes is None else sizes(axes, "axes")
    rank = x.ndim + len(listed)
    new = {axis_of(int(d), rank, "axis") for d in listed}
    if len(new) != len(listed):
        raise ArgumentError(f"axes {listed} name a dimension twice")
    old = iter(x.shape)
    return _with_sizes(x, [1 if d in new else next(old) for d in range(rank)])


def _with_sizes(x: Any, wanted: Sequence[Any]) -> Any:
    return x.reshape(wanted) if isinstance(x, np.ndarray) else F.reshape(x, tuple(wanted))


@meaning("Concat")
def _concat(a: Applied, *x: Any) -> Any:
    axis = axis_of(a.need("axis", int), x[0].ndim, "axis")
    if is_known(x) and sum(each.size for each in x) < 4096:
        return np.concatenate(x, axis)
    return F.cat([tensor(each) for each in x], axis)


@meaning("Split")
def _split(a: Applied, x: Any, split: Any = None) -> Any:
    axis = axis_of(a.get("axis", 0), x.ndim, "axis")
    parts = a.get("split") if split is None else sizes(split, "the sizes")
    if not parts:
        count = a.get("num_outputs", a.nout)
        n = x.shape[axis]
        step = (n + count - 1) // count
        parts = [step] * (count - 1) + [n - step * (count - 1)]
    if isinstance(x, np.ndarray):
        return list(np.split(x, np.cumsum(parts)[:-1], axis))
    return list(F.split(x, list(parts), axis))


@meaning("Slice")
def _slice(a: Applied, x: Any, starts: Any = None, ends: Any = None, axes: Any = None, steps: Any = None) -> Any:
    if starts is None:
        first, last, listed = a.need("starts", list), a.need("ends", list), a.get("axes")
        strides = [1] * len(first)
    else:
        first, last = sizes(starts, "starts"), sizes(ends, "ends")
        listed = None if axes is None else sizes(axes, "axes")
        strides = [1] * len(first) if steps is None else sizes(steps, "steps")
    dims = [axis_of(int(d), x.ndim, "axis") for d in (range(len(first)) if listed is None else listed)]
    whole: list[Any] = [slice(None)] * x.ndim
    flipped = []
    for d, start, end, step in zip(dims, first, last, strides, strict=True):
        if type(step) is not int or step == 0:
            raise ArgumentError(f"a slice has steps of {step}")
        whole[d] = _part(x.shape[d], start, end, step)
        if step < 0 and not isinstance(x, np.ndarray):
            flipped.append(d)
            whole[d] = _mirrored(x.shape[d], start, end, step)
    if flipped:
        x = F.flip(x, tuple(flipped))
    return x[tuple(whole)] if whole else x


def _part(n: Any, start: Any, end: Any, step: int) -> slice:
    first = None if _far(start) and (start > 0) is (step < 0) else start
    if type(end) is int and step < 0 and end < 0 and (_far(end) or (type(n) is int and end < -n)):
        return slice(first, None, step)
    return slice(first, None if _far(end) and end > 0 else end, step)


def _far(n: Any) -> bool:
    return type(n) is int and abs(n) >= _END


def _mirrored(n: Any, start: Any, end: Any, step: int) -> slice:
    """The slice of the flipped dimension that visits the same elements."""

    def place(i: Any) -> Any:
        return n - 1 - (i + n if i < 0 else i)

    first = None if _far(start) and start > 0 else place(start)
    if first is not None and not isinstance(first, Dim):
        first = max(first, 0)
    if (_far(end) and end < 0) or (type(n) is int and type(end) is int and end < -n):
        return slice(first, None, -step)
    last = place(end)
    return slice(first, last, -step)


@meaning("Expand")
def _expand(a: Applied, x: Any, shape: Any) -> Any:
    wanted = sizes(shape, "the shape")
    require_room(wanted, "the result")
    own = [1] * (len(wanted) - x.ndim) + shape_of(x)
    wanted = [1] * (len(own) - len(wanted)) + wanted
    target = [m if type(n) is int and n == 1 else n for m, n in zip(own, wanted, strict=True)]
    if isinstance(x, np.ndarray) and small(target):
        return np.broadcast_to(x, target).copy()
    return F.expand(tensor(x), tuple(target))


@meaning("Tile")
def _tile(a: Applied, x: Any, repeats: Any) -> Any:
    counts = sizes(repeats, "repeats")
    require_room([m * n for m, n in zip(counts, x.shape, strict=False)], "the result")
    return np.tile(x, counts) if is_known((x,)) and small(counts) else F.tile(tensor(x), tuple(counts))


@meaning("ConstantOfShape")
def _constant_of_shape(a: Applied, shape: Any) -> Any:
    wanted = sizes(shape, "the shape")
    require_room(wanted, "the result")
    value = a.get("value")
    value = np.zeros(1, np.float32) if value is None else value
    if small(wanted) and len(wanted) < 2:
        return np.full(wanted, value.reshape(-1)[0], value.dtype)
    return full(tuple(wanted), value.reshape(-1)[0].item(), value.dtype)


@meaning("Range")
def _range(a: Applied, start: Any, limit: Any, delta: Any) -> Any:
    dtype = start.dtype if start.dtype != object else np.dtype(np.int64)
    limit = a.sizes.get(a.node.inputs[1], limit)
    first, last, step = (number(v, name) for v, name in ((start, "start"), (limit, "limit"), (delta, "delta")))
    if step == 0:
        raise ArgumentError("a range has steps of 0")
    if isinstance(last, Dim) and dtype.kind == "f":
        if step != 1 or first != int(first):
            raise TraceError(f"a range of floats from {first} to a size that may change has steps of {step}, not 1")
        return converted(arange(int(first), last), dtype)
    if dtype.kind == "f":
        count = max(0, int(np.ceil((last - first) / step)))
        require_room([count], "the result")
        return converted(arange(count), dtype) * step + first
    if isinstance(last - first, Dim) or not small([max(0, (last - first) // step)]):
        require_room([last - first], "the result")
        return converted(arange(first, last, step), dtype)
    return np.arange(first, last, step).astype(dtype)


@meaning("EyeLike")
def _eye_like(a: Applied, x: Any) -> Any:
    rows, columns = x.shape
    code = a.get("dtype")
    dtype = x.dtype if code is None else dtype_of(code, "the result")
    k = a.get("k", 0)
    if k == 0:
        return eye(rows, columns, dtype=dtype)
    down = F.reshape(arange(rows), (rows, 1))
    return converted(F.eq(down + k, F.reshape(arange(columns), (1, columns))), dtype)


@meaning("Trilu")
def _trilu(a: Applied, x: Any, k: Any = None) -> Any:
    apply = F.triu if a.get("upper", 1) else F.tril
    return apply(tensor(x), 0 if k is None else int(number(k, "k")))


@of_tensors("DepthToSpace")
def _depth_to_space(a: Applied, x: Any) -> Any:
    b, (n, c, h, w) = a.need("blocksize", int), x.shape
    parts, order = ((b, b, c // (b * b)), (0, 3, 4, 1, 5, 2))
    if a.get("mode", "DCR") == "CRD":
        parts, order = ((c // (b * b), b, b), (0, 1, 4, 2, 5, 3))
    return F.reshape(F.permute(F.reshape(x, (n, *parts, h, w)), order), (n, c // (b * b), h * b, w * b))


@of_tensors("SpaceToDepth")
def _space_to_depth(a: Applied, x: Any) -> Any:
    b, (n, c, h, w) = a.need("blocksize", int), x.shape
    order = (0, 1, 3, 5, 2, 4) if a.get("mode", "DCR") == "CRD" else (0, 3, 5, 1, 2, 4)
    parts = F.permute(F.reshape(x, (n, c, h // b, b, w // b, b)), order)
    return F.reshape(parts, (n, c * b * b, h // b, w // b))


def _places(mode: str, n: Any, before: Any, after: Any) -> Any:
    """Where the elements of a padded dimension come from."""
    i = arange(before + n + after) - full((), before, np.int64)
    if type(n) is int and n == 1:
        return i * 0
    last = full((), n - 1, np.int64)
    if mode == "edge":
        return F.minimum(F.maximum(i, full((), 0, np.int64)), last)
    if mode == "wrap":
        return F.remainder(i, last + 1)
    i = F.remainder(i, last * 2)
    return F.where(i > last, last * 2 - i, i)


@meaning("Pad")
def _pad(a: Applied, x: Any, pads: Any = None, value: Any = None, axes: Any = None) -> Any:
    x = tensor(x)
    amounts = a.get("pads", a.get("paddings")) if pads is None else sizes(pads, "pads")
    fill = a.get("value", 0.0) if value is None else number(value, "the constant")
    dims = list(range(x.ndim)) if axes is None else [axis_of(int(d), x.ndim, "axis") for d in sizes(axes, "axes")]
    if amounts is None or len(amounts) != 2 * len(dims):
        raise ArgumentError(f"pads {amounts} for dimensions {dims}")
    ends = {d: (amounts[i], amounts[i + len(dims)]) for i, d in enumerate(dims)}
    require_room([x.shape[d] + sum(map(abs, ends.get(d, ()))) for d in range(x.ndim)], "the result")
    mode = a.get("mode", "constant")
    if mode == "constant":
        fill = bool(fill) if x.dtype == bool else int(fill) if x.dtype.kind in "iu" else float(fill)
        listed = [n for d in reversed(range(x.ndim)) for n in ends.get(d, (0, 0))]
        return F.pad(x, listed, value=fill)
    if mode not in ("edge", "reflect", "wrap"):
        raise ArgumentError(f"it pads by {mode!r}")
    for d, (before, after) in ends.items():
        for end, amount in enumerate((before, after)):  # negative amounts take away
            if type(amount) is int and amount < 0:
                x = F.narrow(x, d, 0 if end else -amount, x.shape[d] + amount)
        before, after = (max(n, 0) if type(n) is int else n for n in (before, after))
        if not (type(before) is int and before == 0 and type(after) is int and after == 0):
            x = F.index_select(x, d, _places(mode, x.shape[d], before, after))
    return x


# ------------------------------------------------------------------ lists of tensors


@meaning("SequenceConstruct")
def _construct(a: Applied, *x: Any) -> Any:
    return [list(x)]


@meaning("SequenceEmpty")
def _empty(a: Applied) -> Any:
    return [[]]


@meaning("SequenceLength")
def _length(a: Applied, x: list[Any]) -> Any:
    return np.asarray(len(x), np.int64)


@meaning("SequenceAt")
def _at(a: Applied, x: list[Any], i: Any) -> Any:
    return x[int(number(i, "the position"))]


@meaning("SequenceInsert")
def _insert(a: Applied, x: list[Any], y: Any, i: Any = None) -> Any:
    at = len(x) if i is None else int(number(i, "the position"))
    return [[*x[:at], y, *x[at:]]]


@meaning("SequenceErase")
def _erase(a: Applied, x: list[Any], i: Any = None) -> Any:
    at = (len(x) - 1 if i is None else int(number(i, "the position"))) % max(len(x), 1)
    return [[*x[:at], *x[at + 1 :]]]


@meaning("SplitToSequence")
def _split_to_sequence(a: Applied, x: Any, split: Any = None) -> Any:
    x = tensor(x)
    d = axis_of(a.get("axis", 0), x.ndim, "axis")
    if split is None:
        parts = list(F.split(x, 1, d))
        return [[F.squeeze(p, d) for p in parts] if not a.get("keepdims", 1) else parts]
    wanted = sizes(split, "the sizes")
    return [list(F.split(x, wanted if split.ndim else wanted[0], d))]


@meaning("ConcatFromSequence")
def _concat_from_sequence(a: Applied, x: list[Any]) -> Any:
    parts = list(map(tensor, x))
    return (F.stack if a.get("new_axis", 0) else F.cat)(parts, a.need("axis", int))
