"""A graph as a list of items over buffers: views are folded away, what cannot be folded is copied."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from common.dim import Dim, hint, same
from common.dtypes import bool_, number_spec
from common.errors import CompileError
from common.ops._define import compute_dtypes, contiguous_strides
from common.spec import Spec, numel
from static.graph import Graph, Node, Value
from static.lowering.items import (
    Access,
    Buffer,
    Const,
    Item,
    Layout,
    Operand,
    Sizes,
    dense_layout,
    is_literal,
    make_access,
    sizes_key,
    strip_ones,
)


@dataclass(slots=True)
class Work:
    """The items of a program and where its results go.

    Attributes
    ----------
    inputs : one buffer per input of the graph.
    outputs : (buffer, shape) per output; each buffer is computed and belongs to one output only.
    writes : (state, computed buffer) per effect.
    """

    graph: Graph
    buffers: list[Buffer] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    inputs: list[Buffer] = field(default_factory=list)
    outputs: list[tuple[Buffer, Sizes]] = field(default_factory=list)
    writes: list[tuple[Buffer, Buffer]] = field(default_factory=list)


def legalise(graph: Graph) -> Work:
    """The items of `graph`, in program order.

    Raises
    ------
    CompileError : a node that has no kernel; names the op and the user's line.
    """
    return _Legaliser(graph).run()


class _Legaliser:
    def __init__(self, graph: Graph) -> None:
        self.graph, self.work = graph, Work(graph)
        self.layouts: dict[tuple[int, int], Layout] = {}
        self.copies: dict[Any, Buffer] = {}
        self.bound: set[int] = set()

    def run(self) -> Work:
        positions = {value.key: i for i, value in enumerate(self.graph.inputs)}
        inputs: dict[int, Buffer] = {}
        for node in self.graph.nodes:
            if node.op is None:
                value = node.outputs[0]
                buffer = self.buffer(value.spec.dtype, value.spec.shape)
                buffer.position = positions.get(value.key)
                if buffer.position is not None:
                    inputs[buffer.position] = buffer
                self.layouts[value.key] = dense_layout(buffer)
            else:
                self.add(node)
        for i, value in enumerate(self.graph.inputs):
            if i not in inputs:
                inputs[i] = self.buffer(value.spec.dtype, value.spec.shape)
                inputs[i].position = i
        self.work.inputs = [inputs[i] for i in range(len(self.graph.inputs))]
        for value in self.graph.outputs:
            self.work.outputs.append((self.bind(value), value.spec.shape))
        for effect in self.graph.effects:
            state = self.layouts[effect.state.key].root
            if self.layouts.get(effect.value.key) is not self.layouts[effect.state.key]:
                assert isinstance(state, Buffer)
                self.work.writes.append((state, self.bind(effect.value)))
        self.remove_dead()
        return self.work

    def remove_dead(self) -> None:
        """Drop items that nothing needs, since `number` may have replaced their only use; renumber the rest."""
        needed = {b.id for b, _ in self.work.outputs} | {value.id for _, value in self.work.writes}
        kept = []
        for item in reversed(self.work.items):
            if any(buffer.id in needed for buffer in item.results):
                needed.update(buffer.id for buffer in item.reads)
                kept.append(item)
        self.work.items = kept[::-1]
        for i, item in enumerate(self.work.items):
            item.id = i

    def add(self, node: Node) -> None:
        assert node.op is not None
        number = self.number(node)
        if number is not None:
            shape = node.outputs[0].shape
            self.layouts[node.outputs[0].key] = Layout(number, 0, shape, (0,) * len(shape), False)
        elif node.op.kind == "view":
            self.layouts[node.outputs[0].key] = self.view(node)
        elif node.op.kind == "elementwise":
            self.map(node)
        elif node.op.kind == "reduction":
            self.reduce(node)
        elif node.op.name in ("pick", "spread") and not is_literal(_row(node)[-1], 1):
            self.by_index(node)
        elif node.op.native is not None:
            self.native(node)
        else:
            raise unsupported(node, f"ops of kind {node.op.kind} have no kernel")

    def number(self, node: Node) -> Const | None:
        """The number that every element of a node's result is, if that is known without computing."""
        assert node.op is not None
        name, spec = node.op.name, node.outputs[0].spec
        if name in ("constant", "full"):
            return _constant(node.attrs["value"], spec)
        if name in ("zeros_like", "ones_like"):
            return _constant(int(name == "ones_like"), spec)
        if name == "to" and spec.dtype.kind == "f":
            root = self.layout(node.operands[0]).root
            if isinstance(root, Const) and isinstance(root.value, Dim) and root.dtype in (None, np.dtype(np.int64)):
                return Const(root.value, spec.dtype)
        return None

    # ---------------------------------------------------------------- values
    def buffer(self, dtype: np.dtype[Any], shape: Sizes) -> Buffer:
        made = Buffer(len(self.work.buffers), dtype, shape)
        self.work.buffers.append(made)
        return made

    def item(self, node: Node, kind: str, dims: Sizes, **fields: Any) -> Item:
        made = Item(len(self.work.items), node, kind, dims, **fields)
        self.work.items.append(made)
        for buffer in made.results:
            buffer.maker = made
        return made

    def result(self, value: Value) -> Buffer:
        buffer = self.buffer(value.spec.dtype, value.spec.shape)
        self.layouts[value.key] = dense_layout(buffer)
        return buffer

    def layout(self, operand: Any) -> Layout:
        if type(operand) is Value:
            return self.layouts[operand.key]
        return Layout(Const(operand), 0, (), (), False)

    def view(self, node: Node) -> Layout:
        assert node.op is not None
        source = self.layout(node.operands[0])
        shape = node.outputs[0].spec.shape
        if isinstance(source.root, Const):
            return Layout(source.root, 0, shape, (0,) * len(shape), False)
        attrs = {name: node.attrs[name] for name in node.op.attrs}
        placed = node.op.strided(source.offset, source.shape, source.strides, **attrs)
        if placed is None:
            source = dense_layout(self.contiguous(node, source))
            placed = node.op.strided(source.offset, source.shape, source.strides, **attrs)
        offset, shape, strides = placed
        return Layout(source.root, offset, shape, strides, _is_dense(source.root, offset, shape, strides))

    def contiguous(self, node: Node, layout: Layout) -> Buffer:
        """The buffer that holds exactly this value; made by a copy where needed."""
        if isinstance(layout.root, Buffer) and layout.dense:
            return layout.root
        return self.copy(node, layout)

    def copy(self, node: Node, layout: Layout) -> Buffer:
        root, shape = layout.root, layout.shape
        if isinstance(root, Const):
            assert root.dtype is not None
            return self.fresh_copy(node, layout, root.dtype)
        name = (root.id, sizes_key((layout.offset, *shape)), sizes_key(layout.strides))
        if name not in self.copies:
            self.copies[name] = self.fresh_copy(node, layout, root.dtype)
        return self.copies[name]

    def fresh_copy(self, node: Node, layout: Layout, dtype: np.dtype[Any]) -> Buffer:
        out = self.buffer(dtype, layout.shape)
        operand = Operand(self.operand(layout, layout.shape), dtype)
        self.item(node, "map", strip_ones(layout.shape), function="", dtype=dtype, operands=[operand], results=[out])
        return out

    def operand(self, layout: Layout, shape: Sizes) -> Access | Const:
        """How an item over `shape` reads a value that broadcasts to it."""
        lead = len(shape) - len(layout.shape)
        dims, strides = [], []
        for i, n in enumerate(shape):
            if is_literal(n, 1):
                continue
            own = i >= lead and not is_literal(layout.shape[i - lead], 1)
            dims.append(n)
            strides.append(layout.strides[i - lead] if own and layout.strides else 0)
        return layout.access(tuple(dims), tuple(strides))

    # ---------------------------------------------------------------- kinds of nodes
    def map(self, node: Node) -> None:
        assert node.op is not None
        (value,) = node.outputs
        specs = [x.spec if type(x) is Value else number_spec(hint(x)) for x in node.operands]
        function = node.op.name
        if function == "to":
            target = np.dtype(node.attrs["dtype"])
            dtype, function = specs[0].dtype, "" if specs[0].dtype == target else f"to_{target.name}"
        else:
            dtype, _, _ = compute_dtypes(node.op, specs)
            if node.op.attrs:
                raise unsupported(node, "an elementwise op with attributes")
        operands = []
        for i, x in enumerate(node.operands):
            wanted = bool_ if function == "where" and i == 0 else dtype
            operands.append(Operand(self.operand(self.layout(x), value.spec.shape), wanted))
        dims = strip_ones(value.spec.shape)
        self.item(node, "map", dims, function=function, dtype=dtype, operands=operands, results=[self.result(value)])

    def reduce(self, node: Node) -> None:
        assert node.op is not None
        (value,), how = node.outputs, node.op.reduce
        layout, reduced = self.layout(node.operands[0]), set(node.attrs["dim"])
        axes = [i for i, n in enumerate(layout.shape) if not is_literal(n, 1)]
        flags = [i in reduced for i in axes]
        if not any(flags):
            return self.reduce_nothing(node, layout)
        if how == "sum" and flags[-1] and sum(flags) == 1 and self.sum_of_spread(node, layout):
            return None
        kept, summed = [i for i, f in zip(axes, flags) if not f], [i for i, f in zip(axes, flags) if f]
        by_columns = bool(kept) and flags == sorted(flags, reverse=True)
        between = not by_columns and flags[-1] is False
        if between and layout.dense and sum(a != b for a, b in zip(flags, flags[1:])) == 2:
            return self.reduce_between(node, layout, flags, axes)
        order = axes if by_columns else kept + summed
        split = len(summed) if by_columns else len(kept)
        source = self.ordered(node, layout, order, split, by_columns)
        dtype = value.spec.dtype if how == "sum" or value.spec.dtype.kind == "f" else np.dtype(np.int64)
        self.item(
            node,
            "cols" if by_columns else "rows",
            tuple(layout.shape[i] for i in order),
            function=how,
            dtype=dtype,
            operands=[Operand(source, dtype)],
            results=[self.result(value)],
            split=split,
        )

    def sum_of_spread(self, node: Node, layout: Layout) -> bool:
        """S of a row that is +0.0 but for one g is +0.0 + g, whatever the order: no loop is needed."""
        root = layout.root
        maker = root.maker if isinstance(root, Buffer) and layout.dense else None
        if maker is None or maker.function != "spread" or sizes_key(maker.dims) != sizes_key(strip_ones(layout.shape)):
            return False
        (value,), (g, _) = node.outputs, maker.operands
        source = g.source
        if isinstance(source, Access):
            source = make_access(source.buffer, source.offset, maker.dims[:-1], source.strides[:-1])
        dtype = value.spec.dtype
        if dtype != g.dtype:
            return False
        operands = [Operand(source, dtype), Operand(Const(0), dtype)]
        self.item(
            node, "map", maker.dims[:-1], function="add", dtype=dtype, operands=operands, results=[self.result(value)]
        )
        return True

    def ordered(self, node: Node, layout: Layout, order: list[int], split: int, by_columns: bool) -> Any:
        """The operand of a reduction over dimensions in `order`; copied if a side of it is not one run."""
        dims = tuple(layout.shape[i] for i in order)
        if isinstance(layout.root, Const):
            return layout.root
        strides = tuple(layout.strides[i] for i in order)
        access = make_access(layout.root, layout.offset, dims, strides)
        inner = access.breaks >> split
        outer = access.breaks & ((1 << max(split - 1, 0)) - 1)
        if not inner and not (by_columns and outer):
            return access
        permuted = Layout(layout.root, layout.offset, dims, strides, False)
        return make_access(self.copy(node, permuted), 0, dims, contiguous_strides(dims))

    def reduce_nothing(self, node: Node, layout: Layout) -> None:
        """A reduction over sizes of 1: max(x) = x, and S(x) = +0.0 + x, which turns -0.0 into +0.0."""
        assert node.op is not None
        (value,) = node.outputs
        dtype = value.spec.dtype
        operands = [
            Operand(
                self.operand(
                    Layout(
                        layout.root,
                        layout.offset,
                        strip_ones(layout.shape),
                        tuple(s for n, s in zip(layout.shape, layout.strides or layout.shape) if not is_literal(n, 1)),
                        False,
                    ),
                    strip_ones(layout.shape),
                ),
                dtype,
            )
        ]
        function = "add" if node.op.reduce == "sum" and dtype.kind == "f" else ""
        if function:
            operands.append(Operand(Const(0.0), dtype))
        self.item(
            node,
            "map",
            strip_ones(layout.shape),
            function=function,
            dtype=dtype,
            operands=operands,
            results=[self.result(value)],
        )

    def reduce_between(self, node: Node, layout: Layout, flags: list[bool], axes: list[int]) -> None:
        """One run of dimensions in the middle of a contiguous array: sums of columns, batch by batch."""
        from common.kernels import sums
        from common.op import NativeCall

        assert node.op is not None
        assert isinstance(layout.root, Buffer)
        (value,), how = node.outputs, node.op.reduce
        first, last = flags.index(True), len(flags) - flags[::-1].index(True)
        sizes = [layout.shape[i] for i in axes]
        ints = (numel(tuple(sizes[:first])), numel(tuple(sizes[first:last])), numel(tuple(sizes[last:])))
        source, dtype = layout.root, value.spec.dtype
        work = dtype if how == "sum" or dtype.kind == "f" else np.dtype(np.int64)
        if source.dtype != work:
            source = self.fresh_copy(node, layout, work)
        out = self.result(value) if dtype == work else self.buffer(work, value.spec.shape)
        text = getattr(sums, f"{how}_cols_source")(work)
        scratch = ColumnScratch(ints[1], ints[2], work.itemsize, sums.TILE) if how == "sum" else 0
        call = NativeCall(text, f"{how}_cols", ints, scratch=scratch)
        self.item(
            node, "native", (), function=how, dtype=work, operands=[], results=[out], inputs=[source], calls=[call]
        )
        if dtype != work:
            self.layouts[value.key] = dense_layout(self.fresh_copy(node, dense_layout(out), dtype))

    def by_index(self, node: Node) -> None:
        """`pick` and `spread`: one element per row, which lies at an index that is data."""
        assert node.op is not None
        (value,), dims = node.outputs, strip_ones(_row(node))
        x, index = (self.layout(operand) for operand in node.operands)
        picks = node.op.name == "pick"
        rows = _row(node)[:-1]
        first = self.operand(x, _row(node)) if picks else self.rows_of(x, rows)
        operands = [Operand(first, value.spec.dtype), Operand(self.rows_of(index, rows), np.dtype(np.int64))]
        specs = [Spec(v.spec.shape, v.spec.dtype) for v in node.operands]
        calls = node.op.native(specs, [value.spec], node.attrs)
        self.item(
            node,
            "pick" if picks else "map",
            dims,
            function=node.op.name,
            dtype=value.spec.dtype,
            operands=operands,
            results=[self.result(value)],
            split=len(dims) - 1,
            calls=calls,
        )

    def rows_of(self, layout: Layout, rows: Sizes) -> Access | Const:
        """How an item over rows and columns reads a value that has one element per row."""
        shape, strides = (*layout.shape, 1), (*layout.strides, 0)
        return self.operand(Layout(layout.root, layout.offset, shape, strides, False), (*rows, 0))

    def native(self, node: Node) -> None:
        assert node.op is not None
        inputs, specs = [], []
        for x in node.operands:
            layout = self.layout(x)
            spec = x.spec if type(x) is Value else number_spec(hint(x))
            if isinstance(layout.root, Const) and not layout.shape:
                buffer = self.buffer(spec.dtype, layout.shape)
                buffer.constant = layout.root.value
                inputs.append(buffer)
            else:
                inputs.append(self.contiguous(node, layout))
            specs.append(Spec(spec.shape, spec.dtype))
        outs = [value.spec for value in node.outputs]
        calls = node.op.native(specs, outs, node.attrs)
        if not isinstance(calls, list):
            calls = [calls]
        results = [self.result(value) for value in node.outputs]
        self.item(
            node,
            "native",
            (),
            function=node.op.name,
            dtype=outs[0].dtype,
            operands=[],
            results=results,
            inputs=inputs,
            calls=calls,
        )

    def bind(self, value: Value) -> Buffer:
        """A computed buffer that holds `value` and is used for no other output or write."""
        layout = self.layouts[value.key]
        root = layout.root
        if isinstance(root, Buffer) and layout.dense and root.maker is not None and root.id not in self.bound:
            self.bound.add(root.id)
            return root
        out = self.fresh_copy(value.node, layout, value.spec.dtype)
        self.bound.add(out.id)
        return out


@dataclass(frozen=True, slots=True)
class ColumnScratch:
    """Bytes of accumulators for sums of `columns` columns of `rows` rows, known when sizes are."""

    rows: Any
    columns: Any
    itemsize: int
    tile: int | None = None

    def nbytes(self, rows: int, columns: int) -> int:
        """The bytes for concrete sizes: LANES rows of accumulators per level of blocks."""
        from common.numerics import BLOCK, LANES

        levels = 1
        while rows > BLOCK:
            rows, levels = -(-rows // BLOCK), levels + 1
        return levels * LANES * min(columns, self.tile or columns) * self.itemsize


def _row(node: Node) -> Sizes:
    """The larger shape of `pick` and `spread`, which has a whole row per index."""
    return node.operands[0].shape if node.name == "pick" else node.outputs[0].shape  # type: ignore[no-any-return]


def _constant(value: Any, spec: Spec) -> Const:
    """A number in the dtype in which the graph holds it."""
    if isinstance(value, Dim):
        return Const(value, spec.dtype)
    with np.errstate(over="ignore"):
        return Const(np.asarray(value).astype(spec.dtype).item(), spec.dtype)


def _is_dense(root: Buffer, offset: Any, shape: Sizes, strides: Sizes) -> bool:
    """Whether a view is its whole buffer under another shape."""
    if not is_literal(offset, 0) or not same(numel(shape), numel(root.shape)):
        return False
    wanted = contiguous_strides(shape)
    return all(is_literal(n, 1) or same(a, b) for n, a, b in zip(shape, strides, wanted, strict=True))


def unsupported(node: Node, why: str) -> CompileError:
    """The error for a node that cannot be lowered."""
    file, line, _ = node.source
    return CompileError(f"{node.name} at {file}:{line} cannot be compiled: {why}")
