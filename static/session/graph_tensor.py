"""Tensors and operations of a graph that sessions run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from common.core import mode
from common.core.errors import EscapedTracerError, GraphError
from common.core.op import Op
from common.core.pickling import Bound
from common.tensor.base import TensorBase
from common.tensor.record import record
from static.graph import Node, Source
from static.session.defaults import the_session
from static.tracing.tracer import Tracer


class GraphTensor(Bound, Tracer):
    """A result of an operation of a graph; it has elements in each run of a session.

    Functions, methods and operators add operations to its graph. That needs no block of the graph: where nothing else
    is being traced, its own graph records.
    """

    __slots__ = ()
    __op_priority__ = 4
    _instead = "it belongs to its graph; on the other side, build the graph again and ask for it by its name"

    @property
    def graph(self) -> Any:
        """The graph that it belongs to."""
        return self.trace.graph

    @property
    def op(self) -> Operation:
        """The operation that makes it."""
        return self.graph.operation(self.payload.node)

    @property
    def name(self) -> str:
        """The name of its operation, and which of the results it is: ``scope/add_1:0``."""
        return f"{self.op.name}:{self.payload.index}"

    @property
    def home(self) -> Any:
        """Context in which functions of this tensor are recorded."""
        return self.graph.building()

    def eval(self, feed_dict: Mapping[Any, Any] | None = None, session: Any = None) -> Any:
        """Its elements in a run of a session, the default session if None; see `Session.run`."""
        return the_session(session, self.graph).run(self, feed_dict)

    def numpy(self) -> Any:
        """Refused: there are elements in runs only.

        Raises
        ------
        TraceError : always.
        """
        self.trace.refuse_value(self)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        self.trace.refuse_value(self)

    def describe_escape(self) -> EscapedTracerError:
        """The error for a tensor that something else than its graph asks for."""
        trace = mode.current_trace()
        where = "outside of its graph" if trace is None else f"in {trace.name}"
        return foreign(f"{self!r} is used {where}: build inside `with graph.as_default():`, and pass no tensors of one "
                       "graph to another, or to a static.function: run it, and pass the array")  # fmt: skip

    def __repr__(self) -> str:
        sizes = ", ".join(str(n) if isinstance(n, int) else "?" for n in self.payload.spec.shape)
        return f"<tensor {self.name!r} {self.payload.spec.dtype}[{sizes}], made at {at(self.payload.node.source)}>"

    @staticmethod
    def __apply_op__(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        with next(x for x in operands if isinstance(x, GraphTensor)).home:
            return record(op, operands, attrs)


class ForeignTensorError(GraphError, EscapedTracerError):
    """A tensor of a graph is used in another graph, or in none."""


def foreign(text: str) -> EscapedTracerError:
    """The error for a tensor of another graph."""
    return ForeignTensorError(text)


def at(source: Source) -> str:
    """A line of the user's as text."""
    return f"{source[0]}:{source[1]}"


class Operation(Bound):
    """A node of a graph, as users of TensorFlow 1 know it.

    Attributes
    ----------
    graph, node : where it is.
    name : unique in its graph.
    """

    _instead = "it belongs to its graph; on the other side, build the graph again and ask for it by its name"

    def __init__(self, graph: Any, node: Node, name: str) -> None:
        self.graph, self.node, self.name = graph, node, name

    @property
    def type(self) -> str:
        """The operation's type: the name of its op."""
        return self.graph.trace.kind(self.node)

    @property
    def inputs(self) -> tuple[GraphTensor, ...]:
        """The tensors that it reads."""
        return tuple(map(self.graph.tensor, self.node.values))

    @property
    def outputs(self) -> tuple[GraphTensor, ...]:
        """The tensors that it makes."""
        return tuple(map(self.graph.tensor, self.node.outputs))

    @property
    def control_inputs(self) -> tuple[Operation, ...]:
        """The operations that are run before it."""
        trace = self.graph.trace
        return tuple(self.graph.operation(trace.by_id[i]) for i in trace.controls.get(self.node.id, ()))

    @property
    def source(self) -> Source:
        """The user's file, line and function."""
        return self.node.source

    def add_control_input(self, op: Any) -> None:
        """Run `op` before this operation.

        Raises
        ------
        GraphError : a cycle; or `op` was made later, and operations run in the order in which they were made.
        """
        self.graph.trace.add_control(self, self.graph.as_operation(op))

    def run(self, feed_dict: Mapping[Any, Any] | None = None, session: Any = None) -> None:
        """Run it in a session, the default session if None; see `Session.run`."""
        the_session(session, self.graph).run(self, feed_dict)

    def __repr__(self) -> str:
        return f"<operation {self.name!r} ({self.type}), made at {at(self.source)}>"


def _inside(owner: type, name: str) -> Callable[..., Any]:
    """A method that runs with the tensor's graph open."""

    def method(self: GraphTensor, *args: Any, **kwargs: Any) -> Any:
        with self.home:
            return getattr(owner, name)(self, *args, **kwargs)

    method.__name__ = name
    return method


def _property_inside(found: property) -> property:
    def get(self: GraphTensor) -> Any:
        assert found.fget is not None
        with self.home:
            return found.fget(self)

    return property(get, found.fset, doc=found.__doc__)


#: Methods that need no open graph, or are a class's own.
_OWN = {"__copy__", "__deepcopy__", "__reduce_ex__",
    *vars(GraphTensor), "__new__", "__init__", "__hash__", "known_number", "shape", "dtype", "ndim", "is_leaf", "edge",
    "requires_grad", "retains_grad", "home", "__slots__", "__weakref__", "__class__",
}  # fmt: skip
for _name, (_class, _found) in {
    name: (owner, found) for owner in (TensorBase, Tracer) for name, found in vars(owner).items()
}.items():
    if _name in _OWN:
        continue
    if isinstance(_found, property):
        setattr(GraphTensor, _name, _property_inside(_found))
    elif hasattr(_found, "__get__") and not hasattr(_found, "__set__") and not isinstance(_found, staticmethod):
        setattr(GraphTensor, _name, _inside(_class, _name))
