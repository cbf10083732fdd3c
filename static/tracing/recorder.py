"""Recording a program: ops append nodes to a graph instead of computing."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from common.autograd.view_histories import rebind
from common.core import mode
from common.core.dispatch import interprets
from common.core.dtypes import SUPPORTED, number_spec
from common.core.errors import DTypeError, TraceError
from common.core.int_arguments import number
from common.core.interpretation import OpenTrace
from common.core.op import NUMBER, REGISTRY, Op
from common.core.polynomials import Guard
from common.core.python_numbers import Int, Number, as_array, check_range
from common.core.sizes import Dim, DimScope, hint
from common.core.spec import Spec
from common.evaluate.specialise import run
from common.ops.shape.view_scatter import path_along, placed
from common.tensor.base import NUMBERS, TensorBase
from common.tensor.view_families import Family, ViewStep, family_of, note_view
from static.graph import Effect, Graph, Node, Source, Value
from static.graph.patterns import Copy, Pattern
from static.tracing.assumptions import Facts
from static.tracing.captured import Captured
from static.tracing.grad_attributes import GradAttributes
from static.tracing.refusals import Refusals
from static.tracing.spec_cache import Derived
from static.tracing.tracer import Tracer

if TYPE_CHECKING:
    from common.nn.module import Module


class Recorder(GradAttributes, Refusals, OpenTrace):
    """The base of traces: takes arguments in, appends nodes, follows writes, and gives its graph.

    Attributes
    ----------
    name : of the traced function, for messages.
    facts : what Python objects said.
    captured : sources of the inputs that follow the arguments.
    families : id of a captured tensor -> its views in this trace.
    grads : id -> (tensor, gradient) for tensors whose `.grad` the program has set; a tracer or None.
    assumed : id -> (tensor, whether its `.grad` was None) for tensors whose `.grad` the program has read.
    origin : the tape's node whose gradient rule is running; its line stands for the rule's nodes.
    fixed : argument position -> number, for number arguments that the program used as Python numbers.
    scope : where the next node is made: modules and composites, outermost first.
    hooks : how many hooks of tensors, nodes and modules have run.
    patterns : what has been recorded that may come again, see `static.tracing.repetitions`.
    copies : id of a first node -> the recorded nodes that were copied with it.
    derived : what follows from an op's operands, see `static.tracing.spec_cache`.
    decide : answers Python's questions about elements, see `static.tracing.decisions`; None refuses them.
    regions : the regions that are being traced, outermost first, see `static.tracing.trace_regions.Region`.
    replays : whether calls repeat what Python has done; see `common.core.mode.replayed`.
    """

    replays = True

    def __init__(self, name: str) -> None:
        self.name, self.facts = name, Facts()
        self.decide: Any = None
        self.top: list[Node] = []
        self.nodes = self.top
        self.regions: list[Any] = []
        self.next_id = count().__next__
        self.inputs: list[Value] = []
        self.captured: list[Captured] = []
        self.dims = DimScope(self.constant, lambda dim: self.wrap(self.constant(dim)))
        self.grads: dict[int, tuple[TensorBase, Any]] = {}
        self.read_grads: set[int] = set()
        self.assumed: dict[int, tuple[TensorBase, bool]] = {}
        self.fixed: dict[int, Any] = {}
        self._values: dict[int, Value] = {}
        self._arrays: list[tuple[Captured, np.ndarray]] = []
        self._original: dict[int, Value] = {}
        self._owners: dict[int, Any] = {}
        self._leaf_of: dict[int, tuple[int, Any]] = {}
        self._numbers: dict[int, Any] = {}
        self._from_float: dict[int, bool] = {}
        self._arguments: list[tuple[Tracer, Value]] = []
        self._aliases: list[tuple[weakref.ref[Tracer], Callable[[], Any], Any]] = []
        self._following: set[int] = set()
        self._first_writes: dict[int, int] = {}
        self.families: dict[int, Family] = {}
        self.patterns: dict[Any, Pattern] = {}
        self.copies: dict[int, Copy] = {}
        self.derived = Derived(self)
        self.scope: list[str] = []
        self.origin: Any = None
        self.hooks = 0

    # ------------------------------------------------------------------ building the graph

    def argument(self, leaf: int, x: Any, source: Source) -> Tracer:
        """A new argument: a number, or an array whose sizes other than 1 become symbolic.

        Parameters
        ----------
        leaf : position among the leaves of the call's arguments.
        """
        if isinstance(x, NUMBERS):
            value = self._input(number_spec(x), source, f"arg{len(self.inputs)}")
            self._note(value, np.asarray(x, value.dtype))
            self._leaf_of[value.node.id] = leaf, x
            return Tracer(value, self)
        position = len(self.inputs)
        shape = tuple(n if n == 1 else self.dims.input(position, axis, n) for axis, n in enumerate(x.shape))
        tracer = Tracer(self._input(Spec(shape, x.dtype), source, f"arg{position}"), self)
        self._note(tracer.payload, x)
        self._arguments.append((tracer, tracer.payload))
        return tracer

    def _note(self, value: Value, array: np.ndarray) -> None:
        if self.decide is not None:
            self.decide.note(value, len(self.inputs) - 1, array)

    def _input(self, spec: Spec, source: Source, name: str) -> Value:
        node = Node(self.next_id(), None, (), {"name": name}, (self.derived.one(spec),), source)
        self.top.append(node)
        self.inputs.append(node.outputs[0])
        return node.outputs[0]

    def cotangent(self, spec: Spec) -> Value:
        """A new input for the cotangent of a result, which exists only when a backward pass runs."""
        return self._input(spec, self._source(), f"cotangent{len(self.inputs)}")

    def constant(self, value: Any) -> Value:
        """A weak 0-d constant: a number or a symbolic size."""
        spec = number_spec(hint(value))
        node = Node(self.next_id(), REGISTRY[NUMBER], (), {"value": value}, (spec,), self._source())
        self.nodes.append(node)
        return node.outputs[0]

    def record(self, op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        """Append an application of `op`; composites are recorded as what they are made of."""
        if attrs:
            attrs = {name: number(x) if isinstance(x, Tracer) else x for name, x in attrs.items()}
        if op.forward is not None:
            self.scope.append(op.name)
            try:
                return op.forward(*operands, **attrs)
            finally:
                self.scope.pop()
        values, specs = self.derived(op, [self.payload(x) for x in operands], attrs)
        origin = self.origin
        scope = self.scope if origin is None else ["backward", origin.name(), *self.scope]
        source = self._source() if origin is None else origin.source
        known = {name: self.dims.known(x) for name, x in attrs.items()}
        node = self.append(op, values, known, specs, source, "/".join(scope))
        return node.outputs[0] if op.nout == 1 else node.outputs

    def append(self, op: Op, operands: Sequence[Any], attrs: Any, specs: Any, source: Source, scope: str = "") -> Node:
        """A new node of the program, or of the region that is being traced."""
        node = Node(self.next_id(), op, tuple(operands), attrs, specs, source, scope)
        self.nodes.append(node)
        return node

    def wrap(self, value: Value) -> Tracer:
        """A tracer without history."""
        return Tracer(value, self)

    def note_module(self, module: Module, whole: bool = True) -> None:
        """Note what the program relies on: all attributes of a module that it has called, or the members it has."""
        self.facts.note_module(module, whole)

    def note_alias(self, alias: Tracer, x: Any, same: bool = False, shows: Callable[[], bool] | None = None) -> None:
        """Note that `x` and `alias` show one memory in the eager engine, while both live.

        Parameters
        ----------
        same : whether they show the same elements; writes to one are then writes to the other, else they are refused.
        shows : decides whether they do show one memory, from sizes; asked when one of them is written.
        """
        if same:  # of what `x` is an alias itself, which lives on for them
            x = next((base for other, base in self.detached() if other is x), x)
        elif (root := family_of(x)[1]) is not None:  # which lives as long as anything else that shows its memory
            x = root
        self._aliases.append((weakref.ref(alias), (lambda: x) if same else weakref.ref(x), "same" if same else shows))

    def note_copies(self, *values: Any) -> None:
        """Note what is read as it is because sizes have just made a reshape a copy: every call checks all its sizes."""

    def detached(self) -> list[tuple[Any, Any]]:
        """The live tensors that `detach` has made, with what they are made of."""
        pairs = [(alias(), base()) for alias, base, how in self._aliases if how == "same"]
        return [pair for pair in pairs if pair[0] is not None]

    # ------------------------------------------------------------------ meeting concrete things

    def payload(self, x: Any) -> Any:
        """The value that stands for an operand in this trace."""
        if type(x) is Value:
            return x
        if isinstance(x, Tracer):
            if x.trace is not self:
                raise x.describe_escape()
            return x.payload
        if isinstance(x, TensorBase):
            if id(x) not in self._values:
                self._capture(x, Captured("tensor", x), x.payload)
            return self._values[id(x)]
        if type(x) is int:
            check_range(x)
        if isinstance(x, Dim):
            return self.constant(x)
        if isinstance(x, NUMBERS):
            if isinstance(x, (Number, Int)):  # of a gradient rule; graphs hold Python's own, which can be stored
                return float(x) if isinstance(x, float) else int(x)
            return x
        array = x if isinstance(x, np.ndarray) else as_array(x)
        if id(x) not in self._values:
            self._capture(x, Captured("array", array), array)
        return self._values[id(x)]

    def _capture(self, owner: Any, source: Captured, array: Any) -> Value:
        if array.dtype not in SUPPORTED:
            raise DTypeError(f"an array of dtype {array.dtype} is used in {self.name}; supported are "
                             f"{[d.name for d in SUPPORTED]}")  # fmt: skip
        name = f"{getattr(source.owner, 'name', None) or source.kind}.{len(self.captured)}"
        value = self._input(Spec(array.shape, array.dtype), self._source(), name)
        self.captured.append(source)
        self._note(value, array)
        if source.kind == "tensor":
            self.facts.note_tensor(source.owner)
        self._arrays.append((source, array))
        self._values[id(owner)] = self._original[id(owner)] = value
        self._owners[id(owner)] = owner
        return value

    def set_elements(self, x: TensorBase, new: Any) -> None:
        """An in-place write: from here on `x` stands for `new`.

        Raises
        ------
        TraceError : the eager engine would show the new elements under another name that this trace cannot follow.
        """
        value, same = self.payload(new), []
        self._aliases = [alias for alias in self._aliases if alias[0]() is not None]
        for view, base, how in list(self._aliases):
            alive: Any = view()
            if alive is None or (alive is not x and base() is not x):  # the last that knew it was forgotten above
                continue
            if how == "same":
                same.append(base() if alive is x else alive)
                continue
            root = base()
            if root is None:
                continue
            if how is not None and not how():
                self.note_copies(alive.payload, self.payload(root), value)
                continue
            file, line, _ = alive.payload.node.source
            raise TraceError(
                f"an in-place write to a tensor that shares memory with another (made at {file}:{line} by reshape() or "
                "an index that is data) cannot be recorded; write to a copy (.clone()), or build the result with "
                "where, cat or stack"
            )
        for region in self.regions:
            region.note_write(x, self.payload(x), value)
        last = self.nodes or self.top
        self._first_writes.setdefault(id(x), last[-1].id + 1 if last else 0)
        self.restore(x, value)
        self._following.add(id(x))
        try:
            for other in same:
                if id(other) not in self._following:
                    rebind(other, self.wrap(value), "detach", False)
        finally:
            self._following.discard(id(x))

    def restore(self, x: TensorBase, value: Value) -> None:
        """From here on `x` stands for `value`, whatever has been written to it."""
        if isinstance(x, Tracer):
            x.payload = value
        else:
            if id(x) not in self._original:  # state that is written before it is read is captured all the same
                self.payload(x)
            self._values[id(x)] = value

    def note_views(self, op: Op, attrs: Any, operands: Sequence[Any], results: Sequence[Tracer]) -> None:
        """Note which results show the first operand in the eager engine: those of view ops, and parts as of a split."""
        if not operands or not isinstance(operands[0], TensorBase) or (op.kind != "view" and op.nout == 1):
            return
        start = self.payload(operands[0])
        lies: bool | None = None  # whether a chain of views leads there: to all parts, or to none
        for position, tracer in enumerate(results):
            value, chain = tracer.payload, []
            while value is not start and value.node.op is not None and value.node.op.kind == "view":
                chain.append(value.node)
                value = value.node.operands[0]
            if value is not start or not chain:
                continue
            last = ViewStep(op, attrs, None if op.nout == 1 else position)
            if lies is None:
                family, *shown = family_of(operands[0])
                base, before = (operands[0], ()) if family is None else shown
                lies = placed(base.shape, path_along((*before, last), base)) is not None
            if lies:
                note_view(operands[0], tracer, *last)

    # ------------------------------------------------------------------ leaving the trace

    def known_number(self, value: Any) -> Any:
        """The Python number that `value` is in this call, None if it depends on arrays; the trace then relies on it."""
        if type(value) is not Value:
            return value
        node = value.node
        if node.id in self._leaf_of:
            leaf, number = self._leaf_of[node.id]
            self.fixed[leaf] = number
            return number
        if node.op is not None and node.op.literal:
            number = node.attrs["value"]
            return int(number) if isinstance(number, Dim) else number
        if node.op is None or node.op.kind != "elementwise" or not value.spec.weak:
            return None
        if node.id not in self._numbers:
            numbers = [self.known_number(x) for x in node.operands]
            known = None not in numbers
            pairs = zip(numbers, node.operands) if known else ()
            arrays = [np.asarray(n, x.dtype) if type(x) is Value else n for n, x in pairs]
            self._numbers[node.id] = run(node.op, arrays, node.attrs).item() if known else None
        return self._numbers[node.id]

    def use_numbers(self, given: Mapping[int, Any]) -> None:
        """From now on number arguments are those of another call; none of them is fixed.

        Parameters
        ----------
        given : by id of the node that stands for an argument.
        """
        self._leaf_of = {i: (leaf, given.get(i, x)) for i, (leaf, x) in self._leaf_of.items()}
        self._numbers, self.fixed = {}, {}

    def is_fixed(self, value: Value) -> bool:
        """Whether an input is a number argument that has been used as a Python number."""
        return value.node.id in self._leaf_of and self._leaf_of[value.node.id][0] in self.fixed

    def comes_from_float(self, value: Any) -> bool:
        """Whether a number depends on a float argument, so that the eager engine computes with ops, not in Python."""
        if type(value) is not Value:
            return False
        if value.node.id in self._leaf_of:
            return type(self._leaf_of[value.node.id][1]) is float
        node = value.node
        if node.id not in self._from_float:
            self._from_float[node.id] = any(self.comes_from_float(x) for x in node.operands)
        return self._from_float[node.id]

    def check_state(self) -> None:
        """Put back the arrays of captured tensors that the program has replaced.

        Raises
        ------
        TraceError : there was one.
        """
        changed = [(s.owner, array) for s, array in self._arrays if s.kind == "tensor" and s.owner.payload is not array]
        for owner, array in changed:
            owner.payload = array
        if changed:
            raise TraceError(
                f"{self.name} replaced `.data` of a tensor of shape {changed[0][1].shape} while it was traced, which "
                "the compiled program cannot repeat. Write to the tensor instead: `with no_grad(): p.copy_(value)`."
            )

    def finish(self, outputs: list[Value]) -> tuple[Graph, list[TensorBase], list[TensorBase]]:
        """The graph with final gradients after the outputs; the tensors they belong to; those whose grad is None."""
        targets, cleared = self.final_gradients()
        outputs = [*outputs, *(self.payload(self.grads[id(x)][1]) for x in targets)]
        effects = [Effect(old, tracer.payload) for tracer, old in self._arguments if tracer.payload is not old]
        for key, value in self._values.items():
            original = self._original[key]
            if value.key != original.key:
                effects.append(Effect(original, value))
        return Graph(self.inputs, self.top, outputs, effects), targets, cleared

    def first_writes(self) -> dict[tuple[int, int], int]:
        """Key of an input that the program writes -> the least id of nodes that were made after the first write."""
        inputs = {id(tracer): value for tracer, value in self._arguments} | self._original
        return {inputs[x].key: after for x, after in self._first_writes.items() if x in inputs}

    @property
    def guards(self) -> list[Guard]:
        """Facts about sizes on which the trace relies."""
        return list(self.dims.guards.values())


@interprets(Value)
def _record_value(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    trace = mode.current_trace()
    if trace is None:
        raise TraceError(f"{op.name} meets a value of a graph outside its trace")
    return trace.record(op, operands, attrs)
