"""The trace behind a graph: always open, and read in part by each run.

A trace of a function knows one present value of every piece of state. A graph does not: a run carries out some of the
writes and leaves out others. So every use of a variable is a node that reads it, and every write is a node; a run
carries out those that it needs in the order in which they were made. A use shares the node of an earlier one if no
write was made in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from common.core.dtypes import SUPPORTED
from common.core.errors import DTypeError, GraphError, TraceError
from common.core.python_numbers import as_array
from common.core.spec import Spec
from common.core.switching import Effect
from common.tensor.base import TensorBase, spec_of
from common.tensor.leaf import Leaf
from static.graph import Node, Source, Value
from static.graph.nodes import GraphOp
from static.session.building import Building
from static.session.graph_tensor import GraphTensor, at
from static.session.open_sizes import Sizes
from static.tracing.spec_cache import Derived
from static.tracing.trace import Trace
from static.tracing.tracer import Tracer

if TYPE_CHECKING:
    from static.session.graph_tensor import Operation

ASSIGN: Any = GraphOp("assign", "control")
DEFAULT: Any = GraphOp("placeholder_with_default", "control")
GROUP: Any = GraphOp("group", "control")


class Role(NamedTuple):
    """The role of an input of the graph.

    Attributes
    ----------
    kind : "placeholder", "const" or "variable".
    of : the array of a constant; the tensor whose value is read.
    """

    kind: str
    of: Any


class GraphTrace(Trace):
    """The open trace of a graph.

    Attributes
    ----------
    roles : id of an input -> what it stands for.
    written : id of a write -> the tensor that is written.
    controls : id of a node -> ids of those that must run before it.
    follows : id of a node -> ids of writes that are part of it: of a generator's state, or those of branches and loops.
    tensors : key of a value -> the first tensor that stood for it.
    """

    replays = False
    dims: Sizes

    def __init__(self, graph: Building) -> None:
        super().__init__("the graph")
        self.graph = graph
        self.dims, self.derived = Sizes(self), Derived(self, remembers=False)
        self.by_id: dict[int, Node] = {}
        self.roles: dict[int, Role] = {}
        self.written: dict[int, Any] = {}
        self.controls: dict[int, tuple[int, ...]] = {}
        self.follows: dict[int, list[int]] = {}
        self.tensors: dict[tuple[int, int], GraphTensor] = {}
        self.waits: tuple[int, ...] = ()
        self.next_name: str | None = None

    # ------------------------------------------------------------------ nodes

    def append(self, op: Any, operands: Sequence[Any], attrs: Any, specs: Any, source: Source, scope: str = "") -> Node:
        """A new node of the graph, or of the region that is being traced."""
        self.graph.refuse_if_final(op.name)
        node = super().append(op, operands, attrs, specs, source, scope)
        self.dims.made(node)
        if not self.regions:
            self._register(node)
        return node

    def constant(self, value: Any) -> Value:
        """A weak 0-d constant: a number or a symbolic size."""
        self.graph.refuse_if_final("a number")
        made = super().constant(value)
        if not self.regions:
            self._register(made.node)
        return made

    def _register(self, node: Node, name: str | None = None) -> None:
        self.by_id[node.id] = node
        if self.waits:
            self.controls[node.id] = self.waits
        if name is None:
            name, self.next_name = self.next_name, None
        if name is None:
            parts = [part for part in node.scope.split("/") if part not in ("", "backward")]
            name = "/".join([*parts, node.name.strip("_")])
        self.graph.register(node, name)

    def input(self, spec: Spec, kind: str, of: Any, name: str) -> Value:
        """A new input, outside of the regions that are being traced.

        Parameters
        ----------
        kind, of : see `Role`.
        """
        self.graph.refuse_if_final(kind)
        node = Node(self.next_id(), None, (), {"name": name}, (spec,), self._source())
        self.top.append(node)
        self.roles[node.id] = Role(kind, of)
        self._register(node, name)
        return node.outputs[0]

    def kind(self, node: Node) -> str:
        """The kind of a node, in a word."""
        return self.roles[node.id].kind if node.op is None else node.name.strip("_")

    def wrap(self, value: Value) -> GraphTensor:
        """A tensor without history."""
        tensor = GraphTensor(value, self)
        if not self.regions:
            self.tensors.setdefault(value.key, tensor)
        return tensor

    # ------------------------------------------------------------------ meeting concrete things

    def payload(self, x: Any) -> Any:
        """The value that stands for an operand: arrays are copied, the value of a tensor is read in each run."""
        if type(x) is GraphTensor or (isinstance(x, Tracer) and x.trace is not self):
            return super().payload(x)
        if isinstance(x, TensorBase):
            return self.read(x)
        return self.array(as_array(x)) if isinstance(x, np.ndarray) else super().payload(x)

    def _capture(self, owner: Any, source: Any, array: Any) -> Value:
        return self.array(array)

    def array(self, x: Any, name: str | None = None) -> Value:
        """A constant that is a copy of an array."""
        if x.dtype.newbyteorder("=") not in SUPPORTED:
            raise DTypeError(f"a constant of dtype {x.dtype}; supported are {[d.name for d in SUPPORTED]}")
        kept = np.array(x, x.dtype.newbyteorder("="), order="C")
        kept.flags.writeable = False
        return self.input(Spec(kept.shape, kept.dtype), "const", kept, name or "const")

    def read(self, x: Any) -> Value:
        """The value of a variable, parameter or buffer, as it is when the run comes here."""
        value = self._values.get(id(x))
        if value is None:
            name = f"{x.op.name}/read" if isinstance(x, GraphTensor) else getattr(x, "name", "") or "tensor"
            value = self.first_read(x, spec_of(x), name, absolute=isinstance(x, GraphTensor))
            if not isinstance(x, GraphTensor):
                tensor = self.wrap(value)
                tensor._requires_grad = x.requires_grad
        return value

    def first_read(self, x: Any, spec: Spec, name: str, absolute: bool = False) -> Value:
        """A new node that reads `x`."""
        with self.graph.name_scope("" if absolute else None):
            value = self.input(Spec(spec.shape, spec.dtype), "variable", x, name)
        self._values[id(x)], self._owners[id(x)] = value, x
        return value

    def waiting_for(self, ids: tuple[int, ...]) -> tuple[Effect, ...]:
        """The effects by which new nodes are run after those; what they use is read anew."""
        if self.regions:
            return ()
        return partial(setattr, self, "waits", ids), partial(setattr, self, "_values", {})

    # ------------------------------------------------------------------ writes

    def note_copies(self, *values: Any) -> None:
        """A run that reads one of these checks the sizes that have just made a reshape a copy."""
        self.dims.follow(*(value.node for value in values if type(value) is Value))

    def restore(self, x: TensorBase, value: Value) -> None:
        """From here on `x` stands for `value`."""
        if type(x) is GraphTensor:
            x.payload = value
        else:
            self._values[id(x)] = value

    def set_elements(self, x: TensorBase, new: Any) -> None:
        """An in-place write to a tensor of the graph, to state inside a region, or by what draws random numbers."""
        if type(x) is GraphTensor:
            super().set_elements(x, new)
            return
        value = self.payload(new)
        if self.regions:
            for region in self.regions:
                if isinstance(x, Leaf):
                    region.note_write(x, self.payload(x), value)
                else:
                    first = region.written.get(id(x), (x, self.payload(x), value))[1]
                    region.written[id(x)] = x, first, value
            self.restore(x, value)
            return
        before = self.payload(x)
        if isinstance(x, GraphTensor) and not value.node.regions:
            raise GraphError(
                f"{x!r} is written in place, which no run would carry out: fetch or group what `x.assign(value)` "
                "returns"
            )
        node = self.write(x, value)
        if value.node.regions:
            self.follows.setdefault(value.node.id, []).append(node.id)
        elif getattr(x, "name", "") == "generator.offset":
            self.follows.setdefault(before.node.id, []).append(node.id)
        else:
            self.graph.add_to_collection("update_ops", self.graph.operation(node))

    def write(self, x: Any, value: Value, name: str | None = None) -> Node:
        """A node that gives `x` a new value."""
        if name is None:
            name = f"{x.op.name if isinstance(x, GraphTensor) else getattr(x, 'name', '') or 'tensor'}/Assign"
        with self.graph.name_scope(""):
            self.next_name = name
            node = self.append(ASSIGN, (value,), {}, (Spec(value.shape, value.dtype),), self._source())
        self.written[node.id] = x
        self._values.pop(id(x), None)
        self._owners[id(x)] = x
        return node

    def get_grad(self, x: TensorBase) -> Any:
        """`.grad` as the graph's builder sees it."""
        return x._grad

    def set_grad(self, x: TensorBase, grad: Any) -> None:
        """`.grad = ...`, for tensors of the graph only."""
        if grad is not None and not isinstance(x, GraphTensor):
            raise GraphError(
                "backward() in a graph would leave a tensor of the graph in the `.grad` of a parameter: use "
                "gradients(ys, xs), or the minimize() of an optimiser"
            )
        x._grad = grad

    # ------------------------------------------------------------------ control dependencies

    def adds_in_place(self, grad: TensorBase) -> bool:
        """Whether a sum is written to the memory of a gradient: of a tensor of the graph, see `set_elements`."""
        return type(grad) is GraphTensor and super().adds_in_place(grad)

    def add_control(self, op: Operation, before: Operation) -> None:
        """Let `before` run before `op`; see `Operation.add_control_input`."""
        self.graph.refuse_if_final("control_input")
        if before.node.id >= op.node.id:
            path = self._path(before.node.id, op.node.id)
            if path is not None:
                names = " <- ".join(
                    f"{self.graph.operation(self.by_id[i]).name} ({at(self.by_id[i].source)})" for i in path
                )
                raise GraphError(f"a cycle: {op!r} would wait for itself: {names}")
            raise GraphError(f"{op!r} cannot wait for {before!r}, which was made later: operations run in the order in "
                             "which they were made")  # fmt: skip
        self.controls[op.node.id] = (*self.controls.get(op.node.id, ()), before.node.id)
        self.graph.version += 1
        self.graph.compiled.clear()

    def needs(self, node: Node) -> list[int]:
        """Ids of the nodes without which a node is not run."""
        return [
            *(v.node.id for v in node.values),
            *self.controls.get(node.id, ()),
            *self.follows.get(node.id, ()),
        ]

    def _path(self, start: int, end: int) -> list[int] | None:
        """From a node to one that it needs."""
        came: dict[int, int] = {start: start}
        stack = [start]
        while stack:
            at_node = stack.pop()
            if at_node == end:
                path = [end]
                while path[-1] != start:
                    path.append(came[path[-1]])
                return path[::-1]
            for i in self.needs(self.by_id[at_node]):
                if i not in came:
                    came[i] = at_node
                    stack.append(i)
        return None

    # ------------------------------------------------------------------ what only a run knows

    def refuse_value(self, x: TensorBase) -> None:
        """Explain that a tensor of a graph has no elements; arrays have."""
        if isinstance(x, GraphTensor):
            raise TraceError(
                f"the elements of {x!r} exist only in a run: use session.run(x) or x.eval(); for Python's `if` and "
                "`while` use cond and while_loop, or where(condition, a, b)"
            )

    def refuse_data(self, x: TensorBase) -> None:
        """Refuse to give a tensor of a graph other memory."""
        if isinstance(x, GraphTensor):
            super().refuse_data(x)

    def note_module(self, module: Any, whole: bool = True) -> None:
        """Nothing: a graph is what was built, whatever modules say later."""
