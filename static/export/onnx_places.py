"""Ops that write at places, and windows: as padding, slices and scattering in ONNX.

A place gets its contributions in the order in which the op's record adds them, so that the way back has the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from common.core.errors import ArgumentError
from static.export.onnx_ops import FAMILIES, RULES, OnnxRule, Writer, chosen, rule
from static.graph import Node

INT = np.dtype(np.int64)


def zeros(w: Writer, dtype: Any, shape: Sequence[Any]) -> str:
    """Zeros of a shape."""
    made: str = w.add("Expand", [w.scalar(0, dtype), w.sizes(shape)])
    return made


def padded(w: Writer, x: str, dtype: Any, before: Sequence[Any], after: Sequence[Any], value: Any = 0) -> str:
    """x with numbers around it; a negative amount takes away."""
    if not before:
        return x
    number = bool(value) if np.dtype(dtype).kind == "b" else value
    made: str = w.add("Pad", [x, w.sizes([*before, *after]), w.scalar(number, np.dtype(dtype))])
    return made


def _placed(w: Writer, x: str, dtype: Any, shape: Any, starts: Any, sizes: Any, steps: Any) -> str:
    """x of `sizes` at start, start + step, ... of zeros of a shape."""
    reach = list(sizes)
    for d, step in enumerate(steps):
        if not (type(step) is int and step == 1):
            wide = [*reach[: d + 1], 1, *reach[d + 1 :]]
            x = w.add("Reshape", [x, w.sizes(wide)], allowzero=1)
            x = padded(w, x, dtype, [0] * len(wide), [step - 1 if i == d + 1 else 0 for i in range(len(wide))])
            reach[d] = reach[d] * step
            x = w.add("Reshape", [x, w.sizes(reach)], allowzero=1)
    after = [n - start - own for n, start, own in zip(shape, starts, reach, strict=True)]
    return padded(w, x, dtype, starts, after)


@rule("unslice")
def _unslice(w: Writer, node: Node, x: list[str]) -> str:
    a = node.attrs
    given = w.add("Reshape", [x[0], w.sizes(a["sizes"])], allowzero=1)
    return _placed(w, given, node.outputs[0].dtype, a["shape"], a["starts"], a["sizes"], a["steps"])


@rule("slice_set")
def _slice_set(w: Writer, node: Node, x: list[str]) -> str:
    whole, part = (v.shape for v in node.operands)
    where = whole, node.attrs["starts"], part, node.attrs["steps"]
    ones = w.add("Expand", [w.scalar(1, INT), w.sizes(part)])
    marked = w.cast(_placed(w, ones, INT, *where), INT, bool)
    return chosen(w, node, [marked, _placed(w, x[1], node.outputs[0].dtype, *where), x[0]])


@rule("constant_pad_nd")
def _constant_pad(w: Writer, node: Node, x: list[str]) -> str:
    shape, starts, own = node.attrs["shape"], node.attrs["starts"], node.operands[0].shape
    after = [n - start - m for n, start, m in zip(shape, starts, own, strict=True)]
    return padded(w, x[0], node.outputs[0].dtype, starts, after, node.attrs["value"])


RULES.update({"overwrite": lambda w, node, x: w.add("Expand", [x[1], w.sizes(node.outputs[0].shape)])})
RULES.update({"det": lambda w, node, x: w.add("Det", x)})
RULES.update(dict.fromkeys(("within_bounds", "divisor", "weights"), lambda w, node, x: w.add("Identity", x)))
RULES.update({"scatter_zeros": lambda w, node, x: w.add(
    "ScatterElements", [zeros(w, node.outputs[0].dtype, node.outputs[0].shape), x[1], x[0]],
    axis=int(node.attrs["dim"]), reduction="add",
)})  # fmt: skip
RULES.update(
    {
        "unpool": lambda w, node, x: w.add(
            "ScatterElements", [zeros(w, node.outputs[0].dtype, node.outputs[0].shape), x[1], x[0]], axis=2
        )
    }
)


@rule("tril")
@rule("triu")
def _triangle(w: Writer, node: Node, x: list[str]) -> str:
    k = w.scalar(node.attrs["diagonal"], INT)
    made: str = w.add("Trilu", [x[0], k], upper=int(node.name == "triu"))
    return made


@rule("eye")
def _eye(w: Writer, node: Node, x: list[str]) -> str:
    out = node.outputs[0]
    made: str = w.add("EyeLike", [zeros(w, out.dtype, out.shape)])
    return made


@rule("one_hot")
def _one_hot(w: Writer, node: Node, x: list[str]) -> str:
    values, rows = w.constant(np.array([0, 1], INT)), x[0]
    if not node.operands[0].shape:
        rows = w.add("Unsqueeze", [rows, w.constant(np.array([0], INT))])
    made: str = w.add("OneHot", [rows, w.scalar(node.attrs["num_classes"], INT), values], axis=-1)
    return made if node.operands[0].shape else w.add("Reshape", [made, w.sizes(node.outputs[0].shape)])


@rule("argsort")
def _argsort(w: Writer, node: Node, x: list[str]) -> str:
    n = w.sizes(node.operands[0].shape[-1:])
    made: str = w.add("TopK", [x[0], n], 2, axis=-1, largest=int(bool(node.attrs["descending"])))[1]
    return made


@rule("top")
def _top(w: Writer, node: Node, x: list[str]) -> str:
    k = w.sizes([node.attrs["k"]])
    places: str = w.add("TopK", [x[0], k], 2, axis=-1, largest=int(bool(node.attrs["largest"])))[1]
    if node.attrs["in_order"]:
        return places
    made: str = w.add("TopK", [places, k], 2, axis=-1, largest=0)[0]
    return made


# ------------------------------------------------------------------ indices


def _tuples(w: Writer, indices: Sequence[str]) -> str:
    """Index arrays that broadcast as one array of tuples."""
    zero, last = w.scalar(0, INT), w.constant(np.array([-1], INT))
    same = indices[0]
    for index in indices[1:]:
        same = w.add("Add", [same, index])
    same = w.add("Mul", [same, zero])
    made: str = w.add("Concat", [w.add("Unsqueeze", [w.add("Add", [same, i]), last]) for i in indices], axis=-1)
    return made


def _front(w: Writer, x: str, rank: int, dim: int, count: int, back: bool = False) -> str:
    """x with `count` dimensions from `dim` on in front of all others, or the other way round."""
    order = [*range(dim, dim + count), *range(dim), *range(dim + count, rank)]
    if dim == 0:
        return x
    made: str = w.add("Transpose", [x], perm=[order.index(d) for d in range(rank)] if back else order)
    return made


def _get(w: Writer, node: Node, x: list[str]) -> str:
    dim, k = int(node.attrs["dim"]), len(x) - 1
    if k == 1:
        made: str = w.add("Gather", x, axis=dim)
        return made
    rank = len(node.operands[0].shape)
    found = w.add("GatherND", [_front(w, x[0], rank, dim, k), _tuples(w, x[1:])])
    out = len(node.outputs[0].shape)
    return _front(w, found, out, dim, out - rank + k, back=True)


def _written(w: Writer, node: Node, base: str, new: str, scalar: bool, indices: list[str], kind: str) -> str:
    """Values written at indices of an array like the result."""
    out, dim, k = node.outputs[0], int(node.attrs.get("dim", 0)), len(indices)
    rank = len(out.shape)
    tuples = _tuples(w, indices)
    target = _front(w, base, rank, dim, k)
    if scalar:
        sizes = w.add("Shape", [w.add("GatherND", [target, tuples])])
        new = w.add("Expand", [new, sizes])
    else:
        width = max(len(v.shape) for v in node.operands[-k:])
        new = _front(w, new, rank - k + width, dim, width)
    options = {} if kind == "none" else {"reduction": kind}
    return _front(w, w.add("ScatterND", [target, tuples, new], **options), rank, dim, k, back=True)


def _writing(kind: str) -> OnnxRule:
    def write(w: Writer, node: Node, x: list[str]) -> str:
        return _written(w, node, x[0], x[1], not node.operands[1].shape, x[2:], kind)

    return write


def _put_zeros(w: Writer, node: Node, x: list[str]) -> str:
    return _written(w, node, zeros(w, node.outputs[0].dtype, node.outputs[0].shape), x[0], False, x[1:], "add")


def _clear(w: Writer, node: Node, x: list[str]) -> str:
    return _written(w, node, x[0], w.number(0, node), True, x[1:], "none")


RULES.update({"put_zeros": _put_zeros})
FAMILIES.update({
    "index_get": _get, "index_put_zeros": _put_zeros, "index_clear": _clear, "index_add": _writing("add"),
    "index_set": _writing("none"), "index_mul": _writing("mul"), "index_max": _writing("max"),
    "index_min": _writing("min"),
})  # fmt: skip

# ------------------------------------------------------------------ windows


class WindowPlaces:
    """The elements of windows, one slice of a padded image for each place in a window.

    Attributes
    ----------
    offsets : places in a window, in C order.
    """

    def __init__(self, node: Node, image: Sequence[Any]) -> None:
        a = node.attrs
        names = ("size", "count", "stride", "padding", "dilation")
        self.size, self.count, self.stride, self.padding, self.dilation = (tuple(a[name]) for name in names)
        self.lead = len(image) - len(self.size)
        self.image = tuple(image[self.lead :])
        if any(type(n) is not int for n in (*self.size, *self.stride, *self.dilation)):
            file, line, _ = node.source
            raise ArgumentError(f"export_onnx(): windows of {node.name!r} ({file}:{line}) depend on sizes")
        self.offsets = list(product(*map(range, self.size)))
        if not 0 < len(self.offsets) <= 256:
            file, line, _ = node.source
            raise ArgumentError(
                f"export_onnx(): windows of {node.name!r} ({file}:{line}) have {len(self.offsets)} places, not 1 to 256"
            )
        reach = zip(self.count, self.stride, self.size, self.dilation, strict=True)
        self.padded = [(m - 1) * s + (k - 1) * d + 1 for m, s, k, d in reach]

    def around(self) -> tuple[list[Any], list[Any]]:
        """The padding before and after each dimension; negative where it cuts."""
        ends = [m - n - p for m, n, p in zip(self.padded, self.image, self.padding, strict=True)]
        return [0] * self.lead + list(self.padding), [0] * self.lead + ends

    def slice(self, w: Writer, image: str, offset: Sequence[int]) -> str:
        """The elements at one place of all windows."""
        starts = [o * d for o, d in zip(offset, self.dilation, strict=True)]
        ends = [a + (m - 1) * s + 1 for a, m, s in zip(starts, self.count, self.stride, strict=True)]
        axes = w.constant(np.arange(self.lead, self.lead + len(self.size)))
        made: str = w.add("Slice", [image, *(w.sizes(each) for each in (starts, ends)), axes, w.sizes(self.stride)])
        return made

    def spread(self, w: Writer, v: str, dtype: Any, lead: Sequence[Any], offset: Sequence[int]) -> str:
        """Numbers per window at one place of each, in a padded image of zeros."""
        starts = [o * d for o, d in zip(offset, self.dilation, strict=True)]
        zeros, ones = [0] * self.lead, [1] * self.lead
        shape = [*lead, *(n + s - 1 for n, s in zip(self.padded, self.stride, strict=True))]
        wide = _placed(w, v, dtype, shape, [*zeros, *starts], [*lead, *self.count], [*ones, *self.stride])
        return padded(w, wide, dtype, [*zeros, *[0] * len(starts)], [*zeros, *(1 - s for s in self.stride)])

    def cut(self, w: Writer, image: str, dtype: Any) -> str:
        """A padded image without what is around it."""
        before, after = self.around()
        return padded(w, image, dtype, [-n for n in before], [-n for n in after])


def _total(w: Writer, parts: Sequence[str]) -> str:
    total = parts[0]
    for part in parts[1:]:
        total = w.add("Add", [total, part])
    return total


@rule("window_sum")
def _window_sum(w: Writer, node: Node, x: list[str]) -> str:
    windows = WindowPlaces(node, node.operands[0].shape)
    whole = padded(w, x[0], node.outputs[0].dtype, *windows.around())
    zero = w.number(0, node)  # a sum begins with it, so that there is no -0
    return _total(w, [zero, *(windows.slice(w, whole, offset) for offset in windows.offsets)])


@rule("window_add")
def _window_add(w: Writer, node: Node, x: list[str]) -> str:
    windows, dtype = WindowPlaces(node, node.outputs[0].shape), node.outputs[0].dtype
    lead = node.outputs[0].shape[: windows.lead]
    parts = [windows.spread(w, x[0], dtype, lead, offset) for offset in reversed(windows.offsets)]
    return windows.cut(w, _total(w, [w.number(0, node), *parts]), dtype)


@rule("columns")
def _columns(w: Writer, node: Node, x: list[str]) -> str:
    windows, out = WindowPlaces(node, node.operands[0].shape), node.outputs[0]
    whole = padded(w, x[0], out.dtype, *windows.around())
    axis = w.constant(np.array([2], INT))
    parts = [w.add("Unsqueeze", [windows.slice(w, whole, offset), axis]) for offset in windows.offsets]
    stacked = w.add("Concat", parts, axis=2)
    n, c = node.operands[0].shape[:2]
    shape = [n, c, len(parts), _counted(windows.count)]
    made: str = w.add("Reshape", [stacked, w.sizes(shape)], allowzero=1)
    if node.attrs["joined"]:
        made = w.add("Transpose", [made], perm=[1, 2, 0, 3])
    return made


def _counted(sizes: Sequence[Any]) -> Any:
    total: Any = 1
    for n in sizes:
        total = total * n
    return total


@rule("from_columns")
def _from_columns(w: Writer, node: Node, x: list[str]) -> str:
    windows, out = WindowPlaces(node, node.outputs[0].shape), node.outputs[0]
    lead = out.shape[:2]
    given = w.add("Transpose", [x[0]], perm=[2, 0, 1, 3]) if node.attrs["joined"] else x[0]
    parts = []
    for k, offset in enumerate(windows.offsets):
        column = w.add("Gather", [given, w.scalar(k, INT)], axis=2)
        image = w.add("Reshape", [column, w.sizes([*lead, *windows.count])], allowzero=1)
        parts.append(windows.spread(w, image, out.dtype, lead, offset))
    return windows.cut(w, _total(w, [w.number(0, node), *parts]), out.dtype)
