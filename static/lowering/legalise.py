"""A graph as a list of items over buffers: views are folded away, or copied where they cannot be."""

from __future__ import annotations

from typing import Any

import numpy as np

from common.core.dtypes import number_spec
from common.core.op import NativeCall
from common.core.sizes import Dim, hint
from common.core.spec import Spec
from common.kernels.arrays import copying
from static.graph import Graph, Node, Value
from static.graph.side_effects import acts
from static.lowering.codegen.reduction_items import add_reduction
from static.lowering.indexing.by_index import why_gathered
from static.lowering.indexing.padded import Padded
from static.lowering.ir.items import ArrayBuffer, Const, Layout, dense_layout, sizes_key
from static.lowering.ir.program_values import Work, unsupported
from static.lowering.memory.update_in_place import begins_as_copy


def legalise(graph: Graph, parallel: bool = False) -> Work:
    """The items of `graph`, in program order; `parallel` are those whose loops threads share.

    Raises
    ------
    CompileError : a node that has no kernel; names the op and the user's line.
    """
    return _Legaliser(graph, parallel).run()


class _Legaliser(Padded):
    def __init__(self, graph: Graph, parallel: bool) -> None:
        super().__init__(graph)
        self.parallel = parallel
        self.bound: set[int] = set()

    def run(self) -> Work:
        positions = {value.key: i for i, value in enumerate(self.graph.inputs)}
        inputs: dict[int, ArrayBuffer] = {}
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
                self.layouts[value.key] = dense_layout(inputs[i])
        self.order_acts()
        self.work.inputs = [inputs[i] for i in range(len(self.graph.inputs))]
        for value in self.graph.outputs:
            self.work.outputs.append((self.bind(value), value.spec.shape))
        for effect in self.graph.effects:
            state = self.layouts[effect.state.key].root
            if self.layout(effect.value) is not self.layouts[effect.state.key]:
                assert isinstance(state, ArrayBuffer)
                self.work.writes.append((state, self.bind(effect.value)))
        self.remove_dead()
        return self.work

    def order_acts(self) -> None:
        """Let acts follow each other, and what can fail follow the act before it."""
        last: list[ArrayBuffer] = []
        for item in self.work.items:
            does = acts(item.node) and item.kind == "native"
            if last and (does or item.can_fail):
                item.after = last
                item.collect()
            if does:
                last = item.results[:1] or last

    def remove_dead(self) -> None:
        """Drop items that nothing needs, since `number` may have replaced their only use; renumber the rest."""
        needed = {b.id for b, _ in self.work.outputs} | {value.id for _, value in self.work.writes}
        kept = []
        for item in reversed(self.work.items):
            if acts(item.node) or any(buffer.id in needed for buffer in item.results):
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
        elif self.rolled(node) or self.in_parts(node) or self.padded(node):
            return
        elif node.op.kind == "view":
            self.layouts[node.outputs[0].key] = self.view(node)
        elif node.op.kind == "elementwise":
            self.map(node)
        elif node.op.kind == "reduction":
            add_reduction(self, node)
        elif self.by_index(node):
            return
        elif node.op.kind in ("control", "act") or node.op.native is not None:
            self.native(node)
        else:
            raise unsupported(node, f"ops of kind {node.op.kind} have no kernel")

    def number(self, node: Node) -> Const | None:
        """The number that every element of a node's result is, if that is known without computing."""
        assert node.op is not None
        if not node.outputs:
            return None
        op, spec = node.op, node.outputs[0].spec
        if op.fill is not None:
            return _constant(node.attrs[op.fill] if type(op.fill) is str else op.fill, spec)
        if op.casts and spec.dtype.kind == "f":
            root = self.layout(node.operands[0]).root
            if isinstance(root, Const) and isinstance(root.value, Dim) and root.dtype in (None, np.dtype(np.int64)):
                return Const(root.value, spec.dtype)
        return None

    def map(self, node: Node) -> None:
        assert node.op is not None
        (value,) = node.outputs
        self.layouts[value.key] = self.compute(node, value.spec.shape, [self.layout(x) for x in node.operands])

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
                inputs.append(self.beginning(node, layout))
            specs.append(Spec(spec.shape, spec.dtype))
        outs = [value.spec for value in node.outputs]
        calls = [] if node.op.native is None else list(node.op.native(specs, outs, node.attrs))
        results = [self.result(value) for value in node.outputs]
        item = self.item(
            node,
            "native",
            (),
            function=node.op.name,
            dtype=outs[0].dtype if outs else np.dtype(np.int64),
            operands=[],
            results=results,
            inputs=inputs,
            calls=calls,
            apart=why_gathered(node),
        )
        if len(calls) > 1 and inputs.count(inputs[0]) == 1 and _is_copy(calls[0], outs[0], len(inputs)):
            begins_as_copy(item, [0], inputs[:1])

    def bind(self, value: Value) -> ArrayBuffer:
        """A computed buffer that holds `value` and is used for no other output or write."""
        layout = self.layout(value)
        root = layout.root
        if isinstance(root, ArrayBuffer) and layout.dense and root.maker is not None and root.id not in self.bound:
            self.bound.add(root.id)
            return root
        out = self.fresh_copy(value.node, layout, value.spec.dtype)
        self.bound.add(out.id)
        return out


def _is_copy(call: NativeCall, out: Spec, count: int) -> bool:
    """Whether a call copies the first of `count` operands to the result."""
    whole = copying.copy(out.dtype, copying.copy_args(out.shape), (0, count))
    return (call.source, call.buffers, sizes_key(call.ints)) == (whole.source, whole.buffers, sizes_key(whole.ints))


def _constant(value: Any, spec: Spec) -> Const:
    """A number in the dtype in which the graph holds it."""
    if isinstance(value, Dim):
        return Const(value, spec.dtype)
    with np.errstate(over="ignore"):
        return Const(np.asarray(value).astype(spec.dtype).item(), spec.dtype)
