"""A graph of operations, built first and run by sessions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from common.core import mode
from common.core.errors import ArgumentError, GraphError, MissingNameError
from common.core.int_arguments import shown
from common.core.pickling import Bound
from common.core.spec import named
from common.core.switching import Change, switching
from static.graph import Graph as Program
from static.graph import Node, Value
from static.session.defaults import by_default, default_graph
from static.session.graph_tensor import GraphTensor, Operation, at, foreign
from static.session.recording import GROUP, GraphTrace

if TYPE_CHECKING:
    import networkx as nx

    from common.tools.pictures.picture import Picture

_NAME = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>\[\]-]*")


@by_default
class Graph(Bound):
    """A graph as users of TensorFlow 1 know it: placeholders, variables and operations with unique names.

    Attributes
    ----------
    finalized : whether nothing can be added any more.
    seed : of the sessions' random numbers; None for that of the default generator.
    version : changes when operations are connected anew.
    compiled : what sessions have run, compiled; by fetches, feeds and options.

    Examples
    --------
    >>> import static as tw
    >>> graph = tw.Graph()
    >>> with graph.as_default():
    ...     x = tw.placeholder(tw.float32, [None], name="x")
    ...     y = x * 2.0 + 1.0
    >>> y.name
    'add:0'
    >>> tw.Session(graph).run(y, {x: [1.0, 2.0]})
    array([3., 5.], dtype=float32)
    """

    _instead = (
        "build it again with the same function on the other side; a Saver takes the variables' values there, and "
        "static.function makes functions that can be pickled"
    )

    def __init__(self) -> None:
        self._operations: dict[str, Operation] = {}
        self._names: dict[int, str] = {}
        self._counts: dict[str, int] = {}
        self._scope = ""
        self.variable_scope = ""
        self.reuse: Any = False
        self.variables: dict[str, Any] = {}
        self._collections: dict[str, list[Any]] = {}
        self.finalized = False
        self.seed: int | None = None
        self.version = 0
        self.compiled: dict[Any, Any] = {}
        self.trace = GraphTrace(self)

    # ------------------------------------------------------------------ building

    def as_default(self) -> AbstractContextManager[Graph]:
        """Context manager: functions add operations to this graph, and it is the default graph."""
        return default_graph(self)

    def building(self) -> AbstractContextManager[Any]:
        """Context manager: this graph records, unless something else is being traced."""
        return nullcontext() if mode.current_trace() is not None else mode.activate_trace(self.trace)

    def finalize(self) -> None:
        """Refuse further operations."""
        self.finalized = True

    def refuse_if_final(self, name: str) -> None:
        """Refuse to add an operation to a finalised graph.

        Raises
        ------
        GraphError : it is finalised.
        """
        if self.finalized:
            file, line, function = self.trace._source()
            raise GraphError(
                f"{file}:{line} in {function} adds {name.strip('_')!r} to a graph that is finalized and cannot be "
                "modified"
            )

    def register(self, node: Node, name: str) -> None:
        """Give a new node a name that nothing has."""
        unique = self.unique_name(name)
        self._names[node.id] = unique
        self._operations[unique] = Operation(self, node, unique)

    def unique_name(self, name: str) -> str:
        """`name` in the current scope, with a number behind it if it is taken.

        Raises
        ------
        ArgumentError : it is no name.
        """
        if not isinstance(name, str):
            raise ArgumentError(f"argument 'name' must be str, not {type(name).__name__} ({shown(name)})")
        if not _NAME.fullmatch(name):
            raise ArgumentError(f"{name!r} is not a valid name: letters, digits and . _ - / only, the first no _ - /")
        wanted = self._scope + name
        count = self._counts.get(wanted, 0)
        self._counts[wanted] = count + 1
        unique = wanted
        while count and unique in self._counts:
            unique = f"{wanted}_{count}"
            count += 1
        self._counts.setdefault(unique, 1)
        return unique

    @switching
    def name_scope(self, name: str | None) -> Change:
        """Context manager: names of new operations begin with `name` and a slash.

        Parameters
        ----------
        name : made unique; one that ends in a slash is taken as it is, "" means no scope, None the present one.

        Raises
        ------
        ArgumentError : it is no name.
        """
        scope = self._scope
        if name is not None:
            kept = isinstance(name, str) and (not name or name.endswith("/"))
            scope = name if kept else self.unique_name(name) + "/"
        on, off = ((partial(setattr, self, "_scope", known),) for known in (scope, self._scope))
        return Change(on, off, scope)

    @switching
    def control_dependencies(self, control_inputs: Sequence[Any] | None) -> Change:
        """Context manager: new operations are run after `control_inputs`; None forgets those of blocks outside."""
        trace = self.trace
        before = trace.waits
        ids = [self.as_operation(x).node.id for x in control_inputs or ()]
        now = () if control_inputs is None else tuple(dict.fromkeys((*before, *ids)))
        return Change(trace.waiting_for(now), trace.waiting_for(before) if now != before else ())

    def group(self, *inputs: Any, name: str | None = None) -> Operation:
        """An operation that does nothing but run after all of `inputs`."""
        found = [self.as_operation(x).node.id for x in inputs]
        trace = self.trace
        with self.building():
            trace.next_name = name or ("group_deps" if inputs else "no_op")
            node = trace.append(GROUP, (), {}, (), trace._source())
        trace.controls[node.id] = tuple(dict.fromkeys((*trace.controls.get(node.id, ()), *found)))
        return self.operation(node)

    def gradients(self, ys: Any, xs: Any, grad_ys: Any = None) -> list[Any]:
        """See `static.gradients`."""
        from static.session.gradients import gradients

        return gradients(ys, xs, grad_ys)

    def apply(self, optimizer: Any, pairs: Sequence[tuple[Any, Any]], global_step: Any, name: str | None) -> Operation:
        """Apply gradients as an optimiser's `apply_gradients` does, see `common.optim.minimize`."""
        from static.session.optimize import apply_in_graph

        return apply_in_graph(self, optimizer, pairs, global_step, name)

    # ------------------------------------------------------------------ looking

    def operation(self, node: Node) -> Operation:
        """The operation of a node."""
        name = self._names.get(node.id)
        return (
            Operation(self, node, f"{node.name}, inside a branch or loop") if name is None else self._operations[name]
        )

    def tensor(self, value: Value) -> GraphTensor:
        """The tensor of a value, with its history."""
        known = self.trace.tensors.get(value.key)
        return self.trace.wrap(value) if known is None else known

    def get_operations(self) -> list[Operation]:
        """All operations, in the order in which they were made."""
        return [self.operation(node) for node in self.trace.top]

    def get_operation_by_name(self, name: str) -> Operation:
        """The operation of that name.

        Raises
        ------
        MissingNameError : there is none.
        """
        if name not in self._operations:
            near = [other for other in self._operations if other.rpartition("/")[2] == name.rpartition("/")[2]]
            hint = f"; there is {', '.join(map(repr, near[:3]))}" if near else ""
            raise MissingNameError(f"the graph has no operation {name!r}{hint}")
        return self._operations[name]

    def get_tensor_by_name(self, name: str) -> GraphTensor:
        """The tensor of that name: an operation, a colon, and which of its results.

        Raises
        ------
        MissingNameError : there is none.
        ArgumentError : it is not the name of a tensor.
        """
        base, colon, index = name.rpartition(":")
        if not colon or not index.isdigit():
            raise ArgumentError(f"{name!r} is not the name of a tensor, which is that of an operation and ':0'")
        outputs = self.get_operation_by_name(base).node.outputs
        if int(index) >= len(outputs):
            raise MissingNameError(f"operation {base!r} has {len(outputs)} results, there is no {name!r}")
        return self.tensor(outputs[int(index)])

    def as_graph_element(self, x: Any) -> GraphTensor | Operation:
        """A tensor or operation of this graph, given itself or by name.

        Raises
        ------
        MissingNameError : no such name.
        GraphError : it belongs to another graph.
        ArgumentError : it is neither.
        """
        if isinstance(x, str):
            return self.get_tensor_by_name(x) if ":" in x else self.get_operation_by_name(x)
        if not isinstance(x, (GraphTensor, Operation)):
            raise ArgumentError(
                f"a {type(x).__name__} is no tensor and no operation of a graph, and no name of one: {x!r}"
            )
        if x.graph is not self:
            raise foreign(f"{x!r} is not an element of this graph, but of another one")
        return x

    def as_operation(self, x: Any) -> Operation:
        """The operation that `x` is, or that makes it."""
        found = self.as_graph_element(x)
        return found if isinstance(found, Operation) else found.op

    # ------------------------------------------------------------------ collections

    def add_to_collection(self, name: str, value: Any) -> None:
        """Keep a value under a name."""
        self._collections.setdefault(name, []).append(value)

    def get_collection(self, name: str, scope: str | None = None) -> list[Any]:
        """Values kept under a name; with `scope`, those whose names begin with it."""
        kept = self._collections.get(name, [])
        return [x for x in kept if scope is None or re.match(scope, getattr(x, "name", ""))]

    def get_collection_ref(self, name: str) -> list[Any]:
        """The list itself that is kept under a name."""
        return self._collections.setdefault(name, [])

    def get_all_collection_keys(self) -> list[str]:
        """The names under which something is kept."""
        return [name for name, kept in self._collections.items() if kept]

    def clear_collection(self, name: str) -> None:
        """Keep nothing under a name any more."""
        self._collections.pop(name, None)

    # ------------------------------------------------------------------ as text and pictures

    @property
    def program(self) -> Program:
        """All nodes as one program, whose inputs are placeholders, constants and what reads variables."""
        nodes = list(self.trace.top)
        return Program([n.outputs[0] for n in nodes if n.op is None], nodes, [], [])

    @property
    def dag(self) -> nx.DiGraph:
        """The graph for networkx, see `common.core.digraph`."""
        return self.program.dag

    @property
    def picture(self) -> Picture:
        """The graph as a picture: ``graph.picture.save("graph.svg")``, or print it."""
        from static.reports.program_picture import picture_of

        return picture_of(self.program, "graph")

    def as_graph_def(self) -> str:
        """A line per operation: name, what it does and of what, what it waits for, and the user's line."""
        lines = []
        for op in self.get_operations():
            node = op.node
            operands = [self.tensor(x).name if isinstance(x, Value) else repr(x) for x in node.operands]
            attrs = [
                f"{k}={named(v)}"
                for k, v in node.attrs.items()
                if k not in ("name", "x_dtype") and not isinstance(v, Program)
            ]
            waits = [f"^{other.name}" for other in op.control_inputs]
            results = ", ".join(str(v.spec) for v in node.outputs)
            call = f"{op.type}({', '.join([*operands, *attrs, *waits])})"
            lines.append(f"{op.name} = {call}{' -> ' * bool(results)}{results}  # {at(node.source)}")
        return "\n".join(lines)

    __str__ = as_graph_def
