"""Concatenated values stay in parts, and are put together only where a kernel needs the whole.

`cat`, `stack`, writes to slices and the gradients of slices, which stand among zeros, make values whose parts lie
somewhere already or are numbers. Elementwise operations on them run part by part, and slices of them select. So the
sum of the gradients of all slices of an array adds no whole arrays, and a loop that writes to one slice after the other
copies nothing. Where the whole is needed, parts that are computed are written to their places in it: their items have
windows of one buffer, and an item without a kernel of its own joins them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from common.core.dtypes import number_spec, operand_dtypes
from common.core.op import REGISTRY
from common.core.shapes import contiguous_strides
from common.core.sizes import hint, same_shape
from common.kernels.arrays.reducers import SUM
from common.ops.shape.view import reshape_
from static.graph import Graph, Node, Value
from static.lowering.ir.items import (
    ArrayBuffer,
    Const,
    Layout,
    Operand,
    Sizes,
    dense_layout,
    is_literal,
    is_read_in_steps,
    make_access,
    sizes_key,
    strip_ones,
)
from static.lowering.ir.program_values import Values, unsupported
from static.lowering.memory.nested_joins import Copied, Joined, move, moved, nested
from static.lowering.memory.overlapping_parts import are_read_whole, overlapping
from static.lowering.memory.pieces import (
    MOST,
    cuts,
    is_as_plus_zero,
    is_computed,
    is_put_by_loop,
    is_zero,
    of_number,
    one_dim,
    part,
    seen,
    some,
    with_one,
)
from static.lowering.memory.update_in_place import begins_as_copy

WHOLE = "a value in parts is put together for a kernel that needs all of it"
COMPUTED = 16
"""Most parts of a value that are computed."""
NESTED = 8
"""Operations that are divided because one that reads them is."""


@dataclass(eq=False, slots=True)
class Parts:
    """A value in parts along a dimension.

    Attributes
    ----------
    node : what makes it.
    layouts : where the parts lie; numbers have layouts without a buffer.
    """

    node: Node
    value: Value
    dim: int
    layouts: list[Layout]

    @property
    def sizes(self) -> list[Any]:
        """The sizes of the parts along the dimension."""
        return [layout.shape[self.dim] for layout in self.layouts]


class InParts(Values):
    """The values of a graph, those in parts included.

    Attributes
    ----------
    parts : value key -> its parts, as long as nothing has needed the whole.
    users : value key -> the nodes that read it.
    whole : keys of the values that leave the program.
    overlapping : ids of the nodes whose parts among zeros are added to others that lie at the same places.
    joined : the values that have been put together by copies, by their buffers.
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.parts: dict[tuple[int, int], Parts] = {}
        self.users: dict[tuple[int, int], list[Node]] = {}
        for node in graph.nodes:
            for value in node.values if node.op is None or node.op.fill is None else ():
                self.users.setdefault(value.key, []).append(node)
        self.whole = {value.key for value in (*graph.outputs, *(effect.value for effect in graph.effects))}
        self.overlapping = overlapping(graph.nodes)
        self.joined: dict[int, Joined] = {}

    def layout(self, operand: Any) -> Layout:
        """Where the elements of an operand lie; those of a value in parts in one buffer, from now on."""
        if type(operand) is Value and operand.key in self.parts:
            self.join(self.parts.pop(operand.key))
        return super().layout(operand)

    def in_parts(self, node: Node) -> bool:
        """Add a node whose result or operand is in parts; False, if it has to be added as a whole."""
        assert node.op is not None
        if node.op.kind == "elementwise":
            layouts = self._elementwise(node)
        elif node.op.parts:
            layouts = _WAYS[node.op.parts](self, node)
        else:
            return False
        if layouts is None:
            return False
        dim, parts = layouts
        (value,) = node.outputs
        if len(parts) == 1:
            self.layouts[value.key] = parts[0]
            return True
        self.parts[value.key] = Parts(node, value, dim, parts)
        follow = all(self._follows(user, value, dim) for user in self.users.get(value.key, ()))
        if value.key in self.whole or not follow:
            self.join(self.parts.pop(value.key), fresh=True)
        return True

    def _follows(self, user: Node, value: Value, dim: int) -> bool:
        """Whether a node can read a value in parts."""
        assert user.op is not None
        if user.op.kind == "elementwise":
            return same_shape(user.outputs[0].shape, value.shape)
        if user.op.parts in ("set slice", "set view"):
            return user.operands[0] is value and user.operands[1] is not value
        return user.op.parts in ("part", "turn") or (user.op.parts == "join" and user.attrs["dim"] == dim)

    # ---------------------------------------------------------------- one buffer
    def join(self, parts: Parts, fresh: bool = False) -> None:
        """Put a value together: computed parts are written to windows of its buffer, others are copied there.

        If it is `fresh`, nothing has read its parts: they may be moved.
        """
        from common.kernels.arrays import copying

        value, dim = parts.value, parts.dim
        out = self.result(value)
        strides = contiguous_strides(value.shape)
        start: Any = 0
        inputs: list[ArrayBuffer] = []
        copies: list[tuple[Any, ...]] = []
        inside = nested(parts.layouts, dim, parts.node, self.joined, self.users, self.whole) if fresh else {}
        offsets, found = move(parts.layouts, dim, inside, out), list[Copied]()
        for layout in parts.layouts:
            if isinstance(layout.root, ArrayBuffer) and layout.root.id in offsets:
                inputs.append(layout.root)
                if not layout.dense:
                    read = moved(layout, dim, offsets[layout.root.id], strides)
                    copies.append(
                        (len(inputs) - 1, read.shape, read.offset, read.strides, start * strides[dim], strides)
                    )
                start = start + layout.shape[dim]
                continue
            found.append(Copied(len(inputs), layout, start))
            offset, start = start * strides[dim], start + layout.shape[dim]
            dims = strip_ones(layout.shape)
            steps = tuple(s for s, n in zip(strides, layout.shape, strict=True) if not is_literal(n, 1))
            if isinstance(layout.root, Const) or is_put_by_loop(layout, steps):
                window = self.buffer(out.dtype, layout.shape)
                window.into = out
                operand = Operand(self.operand(layout, layout.shape), out.dtype)
                place = make_access(out, offset, dims, steps)
                self.item(parts.node, "map", dims, function="", dtype=out.dtype, operands=[operand], results=[window],
                          window=place)  # fmt: skip
                inputs.append(window)
            else:
                copies.append((len(inputs), layout.shape, layout.offset, layout.strides, offset, strides))
                inputs.append(layout.root)
        calls = [copying.copy(out.dtype, copying.copy_args(*args), (i, len(inputs))) for i, *args in copies]
        item = self.item(parts.node, "native", (), function="join", dtype=out.dtype, operands=[], results=[out],
                         inputs=inputs, calls=calls, apart=WHOLE)  # fmt: skip
        there = [
            k
            for k, (_, _, offset, steps, place, own) in enumerate(copies)
            if sizes_key((offset, *steps)) == sizes_key((place, *own))
        ]
        if inside:
            return
        begins_as_copy(item, there, [inputs[i] for i, *_ in copies])
        if len(copies) == len(parts.layouts):
            self.joined[out.id] = Joined(item, value, dim, found)

    # ---------------------------------------------------------------- what makes parts
    def _cat(self, node: Node) -> tuple[int, list[Layout]] | None:
        dim, layouts = node.attrs["dim"], list[Layout]()
        for x in node.operands:
            own = self.parts.get(x.key)
            layouts += own.layouts if own is not None and own.dim == dim else [self.layout(x)]
        return some(dim, layouts)

    def _stack(self, node: Node) -> tuple[int, list[Layout]] | None:
        dim, whole = node.attrs["dim"], node.outputs[0].shape
        return some(dim, [with_one(self.layout(x), dim, whole) for x in node.operands])

    def _unslice(self, node: Node) -> tuple[int, list[Layout]] | None:
        attrs, (x,) = node.attrs, node.operands
        sizes = attrs.get("sizes", x.shape)
        place = one_dim(attrs["shape"], attrs["starts"], sizes, attrs.get("steps", ()))
        if place is None or node.id in self.overlapping:
            return None
        dim, before, after = place
        if dim and dim == len(attrs["shape"]) - 1 and are_read_whole(node, attrs["shape"], self.users):
            return None
        inside = self._placed(node, x, sizes, dim)
        number = Const(np.asarray(attrs.get("value", 0)).astype(x.dtype).item(), x.dtype)
        around = [of_number(number, attrs["shape"], dim, size) for size in (before, after)]
        return some(dim, [around[0], *inside, around[1]])

    def _slice_set(self, node: Node) -> tuple[int, list[Layout]] | None:
        _, v = node.operands
        return self._replaced(node, node.attrs["starts"], v.shape, node.attrs["steps"])

    def _view_set(self, node: Node) -> tuple[int, list[Layout]] | None:
        path = node.attrs["path"]
        if len(path) != 1 or REGISTRY[path[0][0]].parts != "part":
            return None
        attrs = dict(path[0][1])
        return self._replaced(node, attrs["starts"], attrs["sizes"], attrs["steps"])

    def _replaced(self, node: Node, starts: Any, sizes: Any, steps: Any) -> tuple[int, list[Layout]] | None:
        """A value with another one in the place of a slice."""
        x, v = node.operands
        place = one_dim(x.shape, starts, sizes, steps)
        if place is None:
            return None
        dim, before, after = place
        division = [n for n in (before, sizes[dim], after) if not is_literal(n, 0)]
        if is_literal(sizes[dim], 0):
            return None
        own = self.parts.get(x.key)
        if own is not None and own.dim != dim:
            own = None
        layouts = [self.layout(x)] if own is None else own.layouts
        cut = cuts([layout.shape[dim] for layout in layouts], division)
        if cut is None:
            return None
        new = self._placed(node, v, sizes, dim)
        middle, out = int(not is_literal(before, 0)), list[Layout]()
        for size, ((i, start), (j, _)) in cut:
            if j != middle:
                out.append(part(layouts[i], dim, start, size))
            elif new:
                out += new
                new = []
        return some(dim, out)

    def _placed(self, node: Node, x: Any, sizes: Sizes, dim: int) -> list[Layout]:
        """An operand under other sizes, with as many that are not 1."""
        own = self.parts.get(x.key)
        if own is not None and own.dim == dim and same_shape(x.shape, sizes):
            return own.layouts
        layout = self.layout(x)
        if isinstance(layout.root, Const):
            return [Layout(layout.root, 0, tuple(sizes), (0,) * len(sizes), False)]
        placed = reshape_.strided(layout.offset, layout.shape, layout.strides, new_shape=tuple(sizes))
        if placed is None:
            layout = dense_layout(self.contiguous(node, layout))
            placed = reshape_.strided(layout.offset, layout.shape, layout.strides, new_shape=tuple(sizes))
        offset, shape, strides = placed
        return [Layout(layout.root, offset, shape, strides, layout.dense)]

    # ---------------------------------------------------------------- what reads parts
    def _slice(self, node: Node) -> tuple[int, list[Layout]] | None:
        own = self.parts.get(node.operands[0].key)
        if own is None:
            return None
        assert node.op is not None
        dim, attrs = own.dim, dict(node.attrs)
        start, size = attrs["starts"][dim], attrs["sizes"][dim]
        rest = own.value.shape[dim] - start - size
        if not is_literal(attrs["steps"][dim], 1) or is_literal(size, 0):
            return None
        cut = cuts(own.sizes, [n for n in (start, size, rest) if not is_literal(n, 0)])
        if cut is None:
            return None
        middle = int(not is_literal(start, 0))
        chosen = [(size, i, at) for size, ((i, at), (j, _)) in cut if j == middle]
        dims = attrs.get("dims", tuple(range(len(attrs["starts"]))))
        if dim not in dims and len(chosen) > 1:
            return None
        layouts = []
        for size, i, at in chosen:
            for name, number in (("starts", at), ("sizes", size)):
                attrs[name] = (*attrs[name][:dim], number, *attrs[name][dim + 1 :])
            layouts.append(seen(node, own.layouts[i], {name: attrs[name] for name in node.op.attrs}))
        return dims.index(dim) if dim in dims else 0, layouts

    def _permute(self, node: Node) -> tuple[int, list[Layout]] | None:
        own = self.parts.get(node.operands[0].key)
        if own is None:
            return None
        dims = node.attrs["dims"]
        return dims.index(own.dim), [seen(node, layout, {"dims": dims}) for layout in own.layouts]

    def _elementwise(self, node: Node) -> tuple[int, list[Layout]] | None:
        """An operation on values in parts, part by part."""
        found = [self.parts[x.key] for x in node.values if x.key in self.parts]
        if not found:
            return None
        (value,), dim = node.outputs, found[0].dim
        if any(own.dim != dim or not same_shape(own.value.shape, value.shape) for own in found):
            return None
        cut = cuts(*(own.sizes for own in found))
        if cut is None or len(cut) > MOST:
            return None
        spans, start = [], 0
        for size, _ in cut:
            spans.append((start, size))
            start = start + size
        return self._divided(node, dim, spans, [NESTED])

    def _divided(self, node: Node, dim: int, spans: list[Any], budget: list[int]) -> tuple[int, list[Layout]] | None:
        """An elementwise node for some spans of a dimension; None if an operand is made as a whole in any case."""
        (value,) = node.outputs
        operands = []
        for x in node.operands:
            layouts = self._spans(x, dim - value.ndim, spans, budget)
            if layouts is None:
                return None
            operands.append(layouts)
        shapes = [(*value.shape[:dim], size, *value.shape[dim + 1 :]) for _, size in spans]
        count = len(self.work.items)
        layouts = [self.compute(node, shape, own) for shape, *own in zip(shapes, *operands, strict=True)]
        return (dim, layouts) if len(self.work.items) - count <= COMPUTED else None

    def _spans(self, x: Any, place: int, spans: list[Any], budget: list[int]) -> list[Layout] | None:
        """Where spans of an operand lie along a dimension (from the end); computed if nothing else reads it."""
        if type(x) is not Value or -place > x.ndim or is_literal(x.shape[place], 1):
            return [self.layout(x)] * len(spans)
        dim, own = x.ndim + place, self.parts.get(x.key)
        if own is not None and own.dim == dim:
            cut = cuts([size for _, size in spans], own.sizes)
            if cut is not None and len(cut) == len(spans):
                layouts = [part(own.layouts[i], dim, start, size) for size, (_, (i, start)) in cut]
                made = {id(layout.root) for layout in own.layouts if is_computed(layout, own.node)}
                if not any(id(layout.root) in made and not is_computed(layout) for layout in layouts):
                    return layouts
                return self._again(x, dim, spans, budget)  # computed in smaller parts, by those who read these
        layout = self.layout(x)
        if isinstance(layout.root, Const) or layout.root.maker is None or layout.root.maker.kind == "native":
            return [part(layout, dim, start, size) for start, size in spans]
        return self._again(x, dim, spans, budget)

    def _again(self, x: Value, dim: int, spans: list[Any], budget: list[int]) -> list[Layout] | None:
        """Spans of what an elementwise node makes, computed one by one."""
        budget[0] -= 1
        op = x.node.op
        if budget[0] < 0 or op is None or op.kind != "elementwise" or x.key in self.whole or len(self.users[x.key]) > 1:
            return None
        divided = self._divided(x.node, dim, spans, budget)
        return None if divided is None else divided[1]

    # ---------------------------------------------------------------- elementwise nodes
    def scalar(self, node: Node) -> tuple[str, tuple[np.dtype[Any], ...]]:
        """The scalar function of an elementwise node, "" for a copy, and the dtypes that it takes."""
        assert node.op is not None
        specs = [x.spec if type(x) is Value else number_spec(hint(x)) for x in node.operands]
        if node.op.casts:
            target = np.dtype(node.attrs["dtype"])
            return "" if specs[0].dtype == target else f"to_{target.name}", (specs[0].dtype,)
        if node.op.attrs:
            raise unsupported(node, "an elementwise op with attributes")
        return "" if node.op.copies else node.op.name, operand_dtypes(node.op, specs)

    def compute(self, node: Node, shape: Sizes, layouts: Sequence[Layout]) -> Layout:
        """The result of an elementwise node over a shape, of operands that lie as told."""
        (value,) = node.outputs
        function, wanted = self.scalar(node)
        if function == SUM.join:
            for x, zero in (layouts, layouts[::-1]):
                if is_zero(zero) and is_as_plus_zero(x, value.dtype) and same_shape(x.shape, shape):
                    return x
        layouts = [dense_layout(self.copy(node, x)) if is_read_in_steps(x, shape) else x for x in layouts]
        operands = [Operand(self.operand(layout, shape), dtype) for layout, dtype in zip(layouts, wanted, strict=True)]
        out = self.buffer(value.dtype, shape)
        self.item(node, "map", strip_ones(shape), function=function, dtype=wanted[-1], operands=operands, results=[out])
        return dense_layout(out)


_WAYS = {
    "join": InParts._cat, "stack up": InParts._stack, "pad": InParts._unslice, "set slice": InParts._slice_set,
    "set view": InParts._view_set, "part": InParts._slice, "turn": InParts._permute,
}  # fmt: skip
