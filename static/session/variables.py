"""Variables: state of which every session has a value of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from common.core import mode
from common.core.dtypes import default_float
from common.core.errors import ArgumentError, DTypeError, GraphError, ShapeError
from common.core.sizes import same_shape
from common.core.switching import Change, switching
from common.tensor.arrays import known_dtype, to_array
from common.tensor.base import TensorBase
from static.session.building import Building, GraphKeys
from static.session.defaults import get_default_graph, the_session
from static.session.graph_tensor import GraphTensor, Operation, at
from static.session.placeholders import convert

AUTO_REUSE = "auto"


class Variable(GraphTensor):
    """State of the default graph; each session has a value of its own, once it has run the initializer.

    In an operation it stands for its value at that point of the run. Operations run in the order in which they were
    made, so a use that was made after an `assign` sees what that wrote, in runs that carry it out.

    Parameters
    ----------
    initial_value : number, array, tensor, or a function that returns one.
    trainable : whether optimisers change it.
    name : "Variable" by default; made unique.
    dtype : by default that of `initial_value`, float32 for floats.

    Attributes
    ----------
    initializer : the operation that gives it its initial value.
    initial_value : that value, a tensor.
    trainable : whether optimisers change it.

    Raises
    ------
    ShapeError : the shape of `initial_value` has sizes that only a run knows.

    Examples
    --------
    >>> import static as tw
    >>> with tw.Graph().as_default(), tw.Session() as session:
    ...     count = tw.Variable(0, name="count", trainable=False)
    ...     up = count.assign_add(1)
    ...     session.run(tw.global_variables_initializer())
    ...     print(session.run(up), session.run(up), session.run("count:0"))
    1 2 2
    """

    __slots__ = ("initializer", "initial_value", "trainable")
    initializer: Operation
    initial_value: Any

    def __init__(self, initial_value: Any, trainable: bool = True, name: str | None = None, dtype: Any = None) -> None:
        graph = get_default_graph()
        self._fill(graph, initial_value, trainable, graph.unique_name(name or "Variable"), dtype)

    def _fill(self, graph: Building, initial: Any, trainable: bool, name: str, dtype: Any) -> None:
        """Make the nodes of the variable, whose name is taken already."""
        trace = graph.trace
        if trace.regions:
            raise GraphError(f"variable {name!r} is made inside a branch or loop: make it outside and use it there")
        with graph.building(), graph.control_dependencies(None):
            with graph.name_scope(f"{name}/"):
                given = initial() if callable(initial) and not isinstance(initial, TensorBase) else initial
                value = convert(graph, given, dtype)
                value = value if dtype is None else value.to(known_dtype(dtype))
            sizes = [n for n in value.shape if not isinstance(n, int)]
            if sizes:
                raise ShapeError(
                    f"variable {name!r}: its initial value has the size {sizes[0]}, which only a run knows"
                )
            spec = trace.payload(value).spec
            self.initial_value, self.trainable = value, bool(trainable)
            self.initializer = graph.operation(trace.write(self, trace.payload(value), f"{name}/Assign"))
            reading = trace.first_read(self, spec, _taken(graph, name), absolute=True)
            super().__init__(reading, trace)
            self._requires_grad = spec.dtype.kind == "f"
            trace.tensors[reading.key] = self
        graph.add_to_collection(GraphKeys.GLOBAL_VARIABLES, self)
        if trainable:
            graph.add_to_collection(GraphKeys.TRAINABLE_VARIABLES, self)

    def value(self) -> GraphTensor:
        """Its value at this point of the run, as a tensor."""
        with self.home:
            return self.graph.tensor(self.trace.read(self))

    def read_value(self) -> GraphTensor:
        """Its value at this point of the run, as an operation of its own."""
        from static.session.placeholders import identity

        return identity(self)

    def assign(self, value: Any, name: str | None = None) -> GraphTensor:
        """The new value; runs that need it, write it to the variable."""
        return assign(self, value, name)

    def assign_add(self, delta: Any, name: str | None = None) -> GraphTensor:
        """The sum; runs that need it, write it to the variable."""
        return assign_add(self, delta, name)

    def assign_sub(self, delta: Any, name: str | None = None) -> GraphTensor:
        """The difference; runs that need it, write it to the variable."""
        return assign_sub(self, delta, name)

    def load(self, value: Any, session: Any = None) -> None:
        """Write to the value that a session has, the default session if None."""
        the_session(session, self.graph).load({self: value})

    def slot(self, name: str, value: np.ndarray) -> Variable:
        """State of an optimiser that belongs to this variable."""
        with self.graph.as_default(), self.graph.name_scope(""):
            return Variable(value, trainable=False, name=f"{self.op.name}/{name}")

    def __repr__(self) -> str:
        return f"<variable {self.name!r} {self.payload.spec}, made at {at(self.payload.node.source)}>"


def _taken(graph: Building, name: str) -> str:
    """A unique name that is given to the next operation."""
    del graph._counts[name]
    return name


def _target(ref: Any) -> Variable:
    if not isinstance(ref, Variable):
        raise ArgumentError(f"assign() writes to a Variable, not to {ref!r}")
    return ref


def assign(ref: Any, value: Any, name: str | None = None) -> GraphTensor:
    """Write to a variable: in runs that need the result, which is the new value.

    Parameters
    ----------
    ref : variable.
    value : of its shape and dtype; numbers and arrays are converted.

    Raises
    ------
    ShapeError, DTypeError : the value has another shape or dtype.
    """
    return _write(_target(ref), lambda old, new: new, value, name or "Assign")


def assign_add(ref: Any, value: Any, name: str | None = None) -> GraphTensor:
    """Add to a variable; see `assign`."""
    return _write(_target(ref), lambda old, new: old + new, value, name or "AssignAdd")


def assign_sub(ref: Any, value: Any, name: str | None = None) -> GraphTensor:
    """Subtract from a variable; see `assign`."""
    return _write(_target(ref), lambda old, new: old - new, value, name or "AssignSub")


def _write(ref: Variable, how: Callable[[Any, Any], Any], value: Any, name: str) -> GraphTensor:
    trace = ref.trace
    with ref.home, mode.no_grad():
        if not isinstance(value, TensorBase):
            array = to_array(value)
            if not np.can_cast(array.dtype, ref.dtype, "same_kind"):
                raise DTypeError(f"{array.dtype} cannot be assigned to {ref!r}")
            value = trace.wrap(trace.array(array.astype(ref.dtype)))
        if value.dtype != ref.dtype:
            raise DTypeError(f"a tensor of dtype {value.dtype} cannot be assigned to {ref!r}; convert it with .to()")
        new = how(ref, value)
        payload = trace.payload(new)
        if not same_shape(payload.shape, ref.shape):
            raise ShapeError(f"a tensor of shape {tuple(payload.shape)} cannot be assigned to {ref!r}")
        if trace.regions:
            trace.set_elements(ref, new)
            return trace.wrap(payload)
        node = trace.write(ref, payload, f"{ref.op.name}/{name}")
        return trace.wrap(node.outputs[0])


# ---------------------------------------------------------------- by name


def get_variable(
    name: str,
    shape: Sequence[int] | None = None,
    dtype: Any = None,
    initializer: Any = None,
    trainable: bool = True,
) -> Variable:
    """The variable of that name in the present `variable_scope`; made if the scope does not reuse variables.

    Parameters
    ----------
    shape : may be left out where `initializer` is a value.
    dtype : float32 by default.
    initializer : an array or tensor, a function of (shape, dtype), or None: uniform in +-sqrt(6 / (rows + columns)), as
        Glorot and Bengio propose (Understanding the difficulty of training deep feedforward neural networks, 2010).

    Raises
    ------
    GraphError : it exists and the scope does not reuse, or the reverse.
    ShapeError : it exists with another shape.
    """
    graph = get_default_graph()
    full = graph.variable_scope + name
    known = graph.variables.get(full)
    if known is not None:
        if not graph.reuse:
            raise GraphError(
                f"variable {full!r} exists already, made at {at(known.payload.node.source)}: set reuse=True or "
                "reuse=AUTO_REUSE in variable_scope to use it again"
            )
        if shape is not None and tuple(shape) != tuple(known.shape):
            raise ShapeError(f"variable {full!r} has shape {tuple(known.shape)}, not {tuple(shape)}")
        found: Variable = known
        return found
    if graph.reuse is True:
        raise GraphError(f"variable {full!r} does not exist, and its variable_scope only reuses variables")
    with graph.name_scope(""):
        value = _initial(initializer, shape, default_float() if dtype is None else known_dtype(dtype))
        made = Variable(value, trainable, full, dtype)
    graph.variables[full] = made
    return made


def _initial(initializer: Any, shape: Any, dtype: np.dtype) -> Any:
    if initializer is not None and not callable(initializer):
        return initializer
    if shape is None:
        raise ArgumentError("get_variable(): a shape is needed unless the initializer is a value")
    sizes = tuple(shape)
    if initializer is not None:
        return lambda: initializer(sizes, dtype)
    return lambda: _glorot(sizes, dtype)


def _glorot(shape: tuple[int, ...], dtype: np.dtype) -> Any:
    from common.random.generator import rand

    rows, columns = (shape[0], shape[-1]) if shape else (1, 1)
    limit = float(np.sqrt(6.0 / max(rows + columns, 1)))
    return (rand(shape, dtype=dtype) * 2.0 - 1.0) * limit


@switching
def variable_scope(name: str, reuse: Any = None) -> Change:
    """Context manager: names of variables and operations begin with `name`.

    Parameters
    ----------
    reuse : True gives existing variables, AUTO_REUSE makes those that are missing; None is as in the scope around.
    """
    graph = get_default_graph()
    scope, inner = f"{graph.variable_scope}{name}/", graph.name_scope(name)._change()
    new = scope, graph.reuse if reuse is None else reuse
    on, off = (
        (partial(setattr, graph, "variable_scope", names), partial(setattr, graph, "reuse", again))
        for names, again in (new, (graph.variable_scope, graph.reuse))
    )
    return Change((*on, *inner.on), (*inner.off, *off), scope)


def global_variables() -> list[Any]:
    """All variables of the default graph."""
    return get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES)


def trainable_variables() -> list[Any]:
    """The variables of the default graph that optimisers change."""
    return get_default_graph().get_collection(GraphKeys.TRAINABLE_VARIABLES)


def variables_initializer(var_list: Iterable[Any], name: str = "init") -> Operation:
    """An operation that gives variables their initial values.

    Raises
    ------
    ArgumentError : something in the list is no variable.
    """
    members = _variables(var_list, "variables_initializer")
    graph = members[0].graph if members else get_default_graph()
    return graph.group(*(v.initializer for v in members), name=name)


def global_variables_initializer() -> Operation:
    """An operation that gives all variables of the default graph their initial values."""
    return variables_initializer(global_variables())


def by_name(var_list: Any) -> Mapping[str, Variable]:
    """Variables by the names under which they are saved."""
    if var_list is None:
        var_list = global_variables()
    return var_list if isinstance(var_list, Mapping) else {v.op.name: v for v in _variables(var_list, "Saver")}


def _variables(var_list: Any, caller: str) -> list[Variable]:
    """The variables of a list; what is none is refused when it comes, since an iterable may not end."""
    members = []
    for x in var_list:
        if not isinstance(x, Variable):
            raise ArgumentError(f"{caller}(): var_list holds variables of a graph, not {type(x).__name__}")
        members.append(x)
    return members
