"""Python's decisions on traced values: the trace takes the path of this call, and guards it by a condition.

``function(control_flow="guard")``. Where Python asks a traced value for its elements, the interpreter computes them
from the call's arrays, with the bits of the compiled program, and an `expect` node is recorded. Only what Python really
looks at is fixed: ``x.item()`` is still a traced number, ``x.item() > 0`` a traced truth value, and the `if` asks for
that one bit. What needs the number itself (``int()``, ``range``, an index, ``math.sqrt``) fixes all of its bits.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from common.core import mode
from common.core.dtypes import bool_, float64, int64
from common.core.errors import ShapeError
from common.core.source_lines import locate, user_frame
from common.core.spec import Spec, numel
from common.tensor.base import TensorBase
from static.graph import Graph, Node, Source, Value
from static.graph.regions import FIRST_ROOM, NeedsRoom, rooms
from static.graph.side_effects import EXPECT
from static.running.python_calls import journal

if TYPE_CHECKING:
    from static.tracing.recorder import Recorder
    from static.tracing.tracer import Tracer


class Decision(NamedTuple):
    """A decision that a path relies on.

    Attributes
    ----------
    source : the user's line that decides.
    dtype, bits : of the value on this path; truth values are int64.
    truth : whether only the truth of something was asked for.
    """

    source: Source
    dtype: np.dtype[Any]
    bits: int
    truth: bool

    def shown(self, bits: int) -> str:
        """A value in Python, from its bits."""
        number = np.int64(bits).view(self.dtype).item()
        return str(bool(number)) if self.truth else repr(number)

    @property
    def place(self) -> str:
        """File, line and code."""
        file, line, _ = self.source
        return f"{file}:{line} `{linecache.getline(file, line).strip()}`"

    def __str__(self) -> str:
        return f"{self.place} is {self.shown(self.bits)}"


class Decisions:
    """The decisions of a trace.

    Parameters
    ----------
    follows : whether a decision is made; else only numbers are handed out, and what Python does with them is refused.

    Attributes
    ----------
    made : in program order.
    known : the arrays that values of the graph are in this call, as far as they are known.
    env : the sizes of this call.
    """

    def __init__(self, trace: Recorder, follows: bool) -> None:
        self.trace, self.made, self.follows = trace, list[Decision](), follows
        self.known: dict[tuple[int, int], Any] = {}
        self.env: dict[Any, int] = {}
        self._numbers: dict[Any, Any] = {}

    def note(self, value: Value, position: int, array: np.ndarray) -> None:
        """Note the array of an input in this call, and its sizes."""
        self.known[value.key] = array
        self.env.update((("in", position, axis), n) for axis, n in enumerate(array.shape))

    def finish(self) -> list[Decision]:
        """All decisions; the arrays of the call are forgotten."""
        self.known.clear()
        return self.made

    # ------------------------------------------------------------------ what Python asks

    def truth(self, x: TensorBase) -> bool:
        """``bool(x)``.

        Raises
        ------
        ShapeError : more than one element.
        TraceError : this call has not computed it: it is inside a loop or a branch, or follows from a cotangent.
        """

        def asked() -> Tracer:
            single = self._single(x, "Boolean value of Tensor with {} values is ambiguous; reduce it to one, for "
                                     "example with .sum()")  # fmt: skip
            answer = single if single.dtype == bool_ else single != 0
            wide: Tracer = answer.to(int64)
            return wide

        return bool(self._decide(x, asked, truth=True))

    def number(self, x: TensorBase) -> int | float | bool:
        """The element as a Python number, which fixes all of its bits."""
        if x.dtype == bool_:
            return self.truth(x)
        answer: int | float = self._decide(x, lambda: self.item(x), truth=False)
        return answer

    def whole(self, x: TensorBase) -> int:
        """``int(x)``, which does not fix what is behind the point."""
        if x.dtype.kind != "f":
            return int(self.number(x))
        with mode.no_grad():
            if self.truth(abs(x) < 2.0**53):
                return int(self.number(x.to(int64)))
        return int(self.number(x))

    def item(self, x: TensorBase) -> Any:
        """``x.item()``: a number that is traced; of a bool, its truth."""
        if x.dtype == bool_:
            return self.truth(x)
        with mode.no_grad():
            single = self._single(x, "a Tensor with {} elements cannot be converted to Scalar")
        if single.payload.spec.weak:
            return single
        wide = float64 if single.dtype.kind == "f" else int64
        with mode.no_grad():
            value = (single.clone() if single.dtype == wide else single.to(wide)).payload
        value.spec = Spec((), wide, True)
        return self.trace.wrap(value)

    def nested(self, x: TensorBase) -> Any:
        """``x.tolist()``."""
        return [self.nested(x[i]) for i in range(int(x.shape[0]))] if x.ndim else self.item(x)

    # ------------------------------------------------------------------ how it is answered

    def _single(self, x: TensorBase, why_not: str) -> Any:
        """The one element as a 0-d traced tensor without history."""
        size = numel(x.shape)
        if size != 1:
            raise ShapeError(why_not.format(size))
        traced = self.trace.wrap(self.trace.payload(x))
        return traced.reshape(()) if x.ndim else traced

    def _decide(self, x: TensorBase, asked: Callable[[], Tracer], *, truth: bool) -> Any:
        trace, value = self.trace, self.trace.payload(x)
        key = value.key, truth
        if not self.follows:
            trace.refuse_value(x)
        if key in self._numbers:
            return self._numbers[key]
        inside = trace.nodes
        try:
            with mode.no_grad():
                wide = asked().payload
            trace.nodes = trace.top  # what a loop's function decides on must follow from values outside
            if trace.regions:
                wide = self._lifted(wide, trace.regions[0].first)
            array: Any = None if wide is None else self._value(wide)
            if array is None:
                trace.refuse_value(x)
            bits, source = int(array.view(np.int64)), locate(*user_frame(1))
            trace.append(EXPECT, (wide,), {"decision": len(self.made), "bits": bits}, (Spec((), int64),), source)
        finally:
            trace.nodes = inside
        self.made.append(Decision(source, wide.dtype, bits, truth))
        self._numbers[key] = array.item()
        return self._numbers[key]

    def _lifted(self, wanted: Value, first: int) -> Value | None:
        """A value that a region computes, computed outside; None if it follows from what the region is given.

        Parameters
        ----------
        first : nodes from this id on belong to the region.
        """
        todo, needed = [wanted.node], dict[int, Node]()
        while todo:
            node = todo.pop()
            if node.id >= first and node.id not in needed:
                if node.op is None or node.regions:
                    return None
                needed[node.id] = node
                todo += [x.node for x in node.values]
        moved: dict[tuple[int, int], Value] = {}
        for _, node in sorted(needed.items()):
            operands = [moved.get(x.key, x) if type(x) is Value else x for x in node.operands]
            copy = self.trace.append(
                cast(Any, node.op), operands, node.attrs, [v.spec for v in node.outputs], node.source
            )
            moved.update(zip((v.key for v in node.outputs), copy.outputs, strict=True))
        return moved.get(wanted.key, wanted)

    def _value(self, wanted: Value) -> Any:
        """The array of a value in this call; None if it follows from what this call does not have."""
        todo, missing, seen = [wanted.node], list[Node](), {wanted.node.id}
        while todo:
            node = todo.pop()
            if node.outputs[0].key in self.known:
                continue
            if node.op is None:
                return None
            missing.append(node)
            new = {x.node.id: x.node for x in node.values if x.node.id not in seen}
            seen.update(new)
            todo += new.values()
        for node in sorted(missing, key=lambda node: node.id):
            self._run(node)
        return np.asarray(self.known[wanted.key])

    def _run(self, node: Node) -> None:
        from static.running.interpreter import run_node

        for atom in rooms(Graph([], [node], [], [])):
            self.env.setdefault(atom, FIRST_ROOM)
        with journal.quiet():
            while True:
                try:
                    results = run_node(node, self.known, self.env)
                except NeedsRoom as need:
                    self.env[need.atom] *= 4
                else:
                    break
        self.known.update((value.key, y) for value, y in zip(node.outputs, results, strict=True))
