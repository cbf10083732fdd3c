"""The interpreter of a mapped function's ops: each runs once, on all examples."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from common.autograd.view_histories import rebind, replayed_from
from common.core import mode
from common.core.dispatch import apply
from common.core.errors import ExampleError, GradientError
from common.core.interpretation import OpenTrace
from common.core.op import Op
from common.core.sizes import Dim
from common.core.spec import Spec
from common.ops.create.creation import made
from common.ops.shape.view_scatter import path_along, placed
from common.random.generator import Generator
from common.tensor.base import NUMBERS, TensorBase, wrap
from common.tensor.create import lift
from common.tensor.observers import packers
from common.tensor.record import cast_operands
from common.tensor.view_families import ViewStep, family_of, note_view
from common.transforms.batching import at_once, batch_calls, batch_control, batch_operands, bodies_of_all
from common.transforms.batching import batch_rules as rules
from common.transforms.batching.around import Outside, Questions
from common.transforms.batching.batched import Batched, BatchedTensor, escaped
from common.transforms.batching.some_examples import BranchOfSome

#: Nodes of ops whose results are parts of the operand, and show its memory.
PARTS = {"SplitBackward0", "SliceBackward0", "UnbindBackward0"}


class BatchTrace(OpenTrace):
    """One call of a mapped function.

    Everything that runs outside of it - arrays, a trace, another `vmap` - goes on doing so: the rules of ops call ops
    on tensors of all examples there, so that these are recorded, compiled and differentiated like others.

    Parameters
    ----------
    name : of the function, for messages.
    count : number of examples.
    randomness : see `common.transforms.vmap.vmap`.
    """

    def __init__(self, name: str, count: Any, randomness: str) -> None:
        self.name, self.count, self.randomness = name, count, randomness
        self.outer = mode.current_trace()
        self.open, self.key = True, None
        self.packers, self.level = packers.get(), mode.dual_level.get()
        self.families: dict[int, Any] = {}
        self.branches: list[BranchOfSome] = []
        self.bodies: list[tuple[str, int, list[TensorBase]]] = []
        self.scope: list[str] = [] if self.outer is None else self.outer.scope
        self.hooks = 0
        self.replays = mode.replayed()
        self._origin: Any = None
        self._grads: dict[int, tuple[TensorBase, Any]] = {}
        self._same: list[tuple[weakref.ref[Any], Any]] = []
        self._following: set[int] = set()

    @property
    def origin(self) -> Any:
        """The tape's node whose gradient rule is running."""
        return self._origin

    @origin.setter
    def origin(self, node: Any) -> None:
        self._origin = node
        if self.outer is not None:
            self.outer.origin = node

    @property
    def outside(self) -> Outside:
        """Context in which ops run as around the call; a new one, since a call that kept its own would be a cycle."""
        return Outside(self)

    @property
    def decide(self) -> Questions:
        """The interpreter that answers Python's questions about elements."""
        return Questions(self)

    def close(self) -> None:
        """End the call: what it has noted of its tensors, which know it, is forgotten."""
        self.open = False
        self.families.clear()
        self._grads.clear()
        self._same.clear()

    @contextmanager
    def reopened(self) -> Iterator[None]:
        """Context in which the function goes on where something else is outside: in a loop, or a backward pass."""
        before = self.outer, self.open
        self.outer, self.open = mode.current_trace(), True
        try:
            with mode.activate_trace(self):
                yield
        finally:
            self.outer, self.open = before

    # ------------------------------------------------------------------ values and tensors

    def payload(self, x: Any) -> Any:
        """The value that stands for an operand; numbers as they are.

        Raises
        ------
        EscapedTracerError : it belongs to a call that has ended.
        """
        kind = type(x)
        if kind is BatchedTensor:
            if x.trace is self:
                return self._read(x.payload) if self.branches else x.payload
            if not x.trace.open:
                raise escaped()
            return Batched(x, False, self)
        if kind is Batched and x.trace is self:
            return x
        if isinstance(x, NUMBERS) and not isinstance(x, np.generic):
            return x
        if isinstance(x, TensorBase):
            return self._read(Batched(x, False, self)) if self.branches else Batched(x, False, self)
        with self.outside:
            outer = self.outer
            value = lift(np.asarray(x)) if outer is None else outer.wrap(outer.payload(x))
        return Batched(value, False, self)

    @contextmanager
    def branch(self, reads: BranchOfSome | None) -> Iterator[None]:
        """Context of a branch that some examples take; None for one that all do."""
        if reads is None:
            yield
            return
        self.branches.append(reads)
        try:
            yield
        finally:
            self.branches.pop()

    def _read(self, value: Batched) -> Batched:
        """A value in branches: one from outside is differentiated by the examples that take them."""
        for branch in self.branches:
            value = branch.read(value)
        return value

    def holds(self, payload: Any) -> bool:
        """Whether a payload is a value of this call."""
        return type(payload) is Batched and payload.trace is self

    def wrap(self, payload: Any) -> BatchedTensor:
        """A tensor without history."""
        if type(payload) is not Batched or payload.trace is not self:
            payload = self.payload(payload)
            if type(payload) is not Batched:
                with self.outside:
                    payload = Batched(lift(np.asarray(payload)), False, self)
        return BatchedTensor(payload)

    def constant(self, value: Any) -> Any:
        """A number, or a size of the trace outside."""
        if isinstance(value, Dim):
            with self.outside:
                return Batched(wrap(value.scope.constant(value)), False, self)
        return value

    def mapped(self, value: Any) -> BatchedTensor:
        """A tensor of one example of `value`, whose dimension 0 is that of the examples."""
        tensor = BatchedTensor(Batched(value, True, self))
        tensor._requires_grad = value._requires_grad
        return tensor

    def record(self, op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        """Run an op on all examples at once."""
        if (found := self.shortly(op, operands, attrs)) is not None:
            return found[1]
        payloads = [self.payload(x) for x in operands]
        if not any(type(x) is Batched and x.mapped for x in payloads):
            with self.outside:
                y = made(op, **attrs) if not payloads else apply(op, [getattr(x, "value", x) for x in payloads], attrs)
                y = tuple(map(lift, y)) if type(y) is tuple else lift(y)
            return self._results(y, False)
        if op.kind == "elementwise":
            if len(payloads) > 1 and len({x.spec.dtype for x in payloads if type(x) is Batched}) > 1:
                payloads = list(cast_operands(op, payloads))
        with self.outside:
            y = rules.on_all(op, payloads, attrs, self.count)
        if y is None:
            assert op.forward is not None
            return op.forward(*payloads, **attrs)
        return self._results(y, True)

    def _results(self, y: Any, mapped: bool) -> Any:
        results = tuple([Batched(part, mapped, self) for part in (y if type(y) is tuple else (y,))])
        for branch in self.branches:
            branch.note(results)
        return results if type(y) is tuple else results[0]

    def repeated(self, name: Any, given: Any, make: Callable[[], Any]) -> Any:
        """Call ``make()``."""
        return make()

    def draw(self, generator: Generator, name: str, shape: tuple[Any, ...], dtype: Any) -> BatchedTensor:
        """Random numbers, by examples or for all of them.

        Raises
        ------
        GradientError : `randomness` is "error".
        """
        batch_calls.require_randomness(self)
        different = self.randomness == "different"
        with self.outside:
            value = lift(generator.draw(name, (self.count, *shape) if different else shape, dtype))
        return BatchedTensor(Batched(value, different, self))

    drawn_by = batch_calls.drawn_by
    shortly = at_once.shortly
    pulled = at_once.pulled

    # ------------------------------------------------------------------ what lies in memory

    def note_views(self, op: Op, attrs: Any, operands: Sequence[Any], results: Sequence[Any]) -> None:
        """Note which results show the first operand, for writes to one of them."""
        parts = op.nout > 1 and op.node_name in PARTS
        if not (parts or op.kind == "view") or not isinstance(operands[0], TensorBase):
            return
        for position, result in enumerate(results):
            step = ViewStep(op, attrs, position if parts else None)
            if op.name == "reshape":
                family, base, before = family_of(operands[0])
                if family is None:
                    base, before = operands[0], ()
                if placed(base.shape, path_along((*before, step), base)) is None:
                    return
            note_view(operands[0], result, *step)

    def note_alias(self, alias: Any, x: Any, same: bool = False, shows: Callable[[], bool] | None = None) -> None:
        """Note that two tensors show the same elements; what is detached has no history outside either."""
        if not same:
            return
        payload = alias.payload
        if payload.value._requires_grad:
            with self.outside:
                alias.payload = Batched(payload.value.detach(), payload.mapped, self)
        self._same = [pair for pair in self._same if pair[0]() is not None]
        self._same.append((weakref.ref(alias), x))

    def set_elements(self, x: Any, new: Any) -> None:
        """An in-place write.

        Raises
        ------
        GradientError : elements of one example would be written to what all examples share.
        TraceError : see `common.transforms.batching.bodies_of_all.require_inside`.
        """
        payload = self.payload(new)
        bodies_of_all.require_inside(self, x)
        if bodies_of_all.has_shapes_only(self, x):
            return
        if type(x) is BatchedTensor and x.trace is self:
            if x.payload.mapped and not payload.mapped:
                with self.outside:
                    payload = Batched(batch_operands.spread(payload, self.count), True, self)
            x.payload = payload  # one that all examples shared was made inside, and is nobody else's
        elif payload.mapped:
            raise GradientError(
                "vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor `other` in "
                "extra_args that has more elements than `self`. This happened due to `other` being vmapped over but "
                "`self` not being vmapped over. Please try to use out-of-place operators instead of inplace arithmetic"
            )
        else:
            with self.outside, mode.no_grad():
                x.copy_(payload.value)
        self._following.add(id(x))
        try:
            for alias, base in list(self._same):
                other = base if alias() is x else alias() if base is x else None
                if other is not None and id(other) not in self._following:
                    rebind(other, self.wrap(payload), "detach", False)
        finally:
            self._following.discard(id(x))

    def write_back(self, arguments: Sequence[Any], given: Sequence[Any], leaves: Sequence[Any]) -> dict[int, Any]:
        """Give arguments that the function has written to their new elements; which values they then hold, by `id`."""
        written = {}
        for x, before, leaf in zip(arguments, given, leaves, strict=True):
            if type(x) is BatchedTensor and x.trace is self and x.payload is not before:
                with self.outside:
                    leaf.copy_(x.payload.value)
                written[id(x.payload)] = leaf
        return written

    def shown(self, x: Any, written: Mapping[int, Any]) -> Batched:
        """A result: an argument that has been written to, or a view of one, shows the memory of that."""
        payload: Batched = self.payload(x)
        if type(x) is not BatchedTensor or not written:
            return payload
        family, base, steps = family_of(x)
        leaf = written.get(id(base.payload))
        if family is None or leaf is None:
            return Batched(written.get(id(payload), payload.value), payload.mapped, self)
        return self.payload(replayed_from(self.mapped(leaf), steps))

    def get_grad(self, x: TensorBase) -> Any:
        """`.grad` as the function sees it."""
        if id(x) in self._grads:
            return self._grads[id(x)][1]
        return x._grad if self.outer is None or type(x) is BatchedTensor else self.outer.get_grad(x)

    def set_grad(self, x: TensorBase, grad: Any) -> None:
        """`.grad = ...` of a tensor of the function.

        Raises
        ------
        GradientError : it is another one, whose gradient would be that of one example.
        """
        if type(x) is not BatchedTensor or x.trace is not self:
            raise GradientError(
                "vmap: backward() inside the mapped function would add the gradient of each example to the .grad of a "
                "tensor from outside: use autograd.grad or func.grad inside, and add outside"
            )
        self._grads[id(x)] = x, grad

    def adds_in_place(self, grad: Any) -> bool:
        """No: nothing is written to memory here."""
        return False

    # ------------------------------------------------------------------ what is more than an op

    def act(self, kind: str, operands: Sequence[Any], attrs: Any) -> None:
        """Print all examples, or check them, at once."""
        batch_calls.act(self, kind, operands, attrs)

    def callback(self, call: Any, operands: Sequence[Any], specs: Sequence[Spec]) -> list[Any]:
        """Call Python once per example."""
        return batch_calls.callback(self, call, operands, specs)

    def run_loop(self, request: Any) -> Any:
        """A loop."""
        return batch_control.run_loop(self, request)

    def run_choice(self, choice: Any) -> Any:
        """Branches."""
        return batch_control.run_choice(self, choice)

    def note_node(self, node: Any, operands: Sequence[Any], results: Sequence[Any]) -> None:
        """Note a node whose gradient is not that of ops."""
        batch_calls.note_node(self, node, operands, results)

    map_function = batch_calls.map_function

    def note_module(self, module: Any, whole: bool = True) -> None:
        """Note that a module is called, or its members are read."""
        if self.outer is not None:
            self.outer.note_module(module, whole)

    # ------------------------------------------------------------------ what no example knows

    def refuse_value(self, x: TensorBase) -> None:
        """Explain that there is no Python value for all examples.

        Raises
        ------
        ExampleError : the elements differ between examples.
        """
        if type(x) is not BatchedTensor:
            if self.outer is not None:
                self.outer.refuse_value(x)
            return
        raise ExampleError(
            "vmap: It looks like you're either (1) calling .item() on a Tensor or (2) attempting to use a Tensor in "
            "some data-dependent control flow, for which all examples would have to agree. Use where, or cond, which "
            "choose for each example"
        )

    def refuse_size(self, function: str, instead: str) -> None:
        """Explain that examples would have results of different sizes.

        Raises
        ------
        ExampleError : always.
        """
        raise ExampleError(
            f"vmap: We do not support batching operators that can output dynamic shape. Attempting to vmap over "
            f"{function}(), whose results could have another size for each example: {instead}"
        )

    def refuse_data(self, x: TensorBase) -> None:
        """Explain how a tensor is written.

        Raises
        ------
        ExampleError : always.
        """
        raise ExampleError(f"vmap: {self.name} replaces `.data` of a tensor; write to the tensor instead, or return it")
