"""A trace that keeps a program as its tape sees it: composites whole, and which ops have no history.

What is replayed from it (`static.export.rerun`) makes the same tape, and with it the same gradients of any order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from common.core.op import COPY, REGISTRY, Op
from common.tensor.base import TensorBase
from static.graph import Node, Source, Value
from static.graph.regions import CONTROL
from static.tracing.trace import Trace
from static.tracing.tracer import Tracer


class WholeTrace(Trace):
    """The trace.

    Parameters
    ----------
    whole : which composites, by name, stay one node.

    Attributes
    ----------
    seen : key of a value -> the first tensor that stood for it.
    """

    def __init__(self, name: str, whole: Callable[[str], bool]) -> None:
        super().__init__(name)
        self.whole = whole
        self.seen: dict[tuple[int, int], TensorBase] = {}

    def argument(self, leaf: int, x: Any, source: Source) -> Tracer:
        """A new argument."""
        tracer = super().argument(leaf, x, source)
        self.seen[tracer.payload.key] = tracer
        return tracer

    def wrap(self, value: Value) -> Tracer:
        """A tracer without history, until somebody gives it one."""
        tracer = Tracer(value, self)
        self.seen.setdefault(value.key, tracer)
        return tracer

    def payload(self, x: Any) -> Any:
        """The value that stands for an operand."""
        value = super().payload(x)
        if type(value) is Value and isinstance(x, TensorBase):
            self.seen.setdefault(value.key, x)
        return value

    def note_alias(self, alias: Tracer, x: Any, same: bool = False, shows: Callable[[], bool] | None = None) -> None:
        """A detached tensor is a value of its own."""
        super().note_alias(alias, x, same, shows)
        value = alias.payload
        if same and x.edge is not None:
            made = self.append(REGISTRY[COPY], (value,), {}, (value.spec,), self._source(), "detach")
            alias.payload = made.outputs[0]
            self.seen[alias.payload.key] = alias

    def record(self, op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        """Append an application of `op`, which stays one node if it is a composite."""
        if op.forward is None or not self.whole(op.name):
            return super().record(op, operands, attrs)
        before = len(self.nodes)
        result = super().record(op, operands, attrs)
        made = result if type(result) is tuple else (result,)
        inputs = [node for node in self.nodes[before:] if node.op is None]
        self.nodes[before:] = inputs
        specs = [value.spec for value in made]
        known = {name: self.dims.known(x) for name, x in attrs.items()}
        origin = self.origin
        scope = self.scope if origin is None else ["backward", origin.name(), *self.scope]
        source = self._source() if origin is None else origin.source
        node = self.append(op, [self.payload(x) for x in operands], known, specs, source, "/".join(scope))
        return node.outputs[0] if op.nout == 1 else node.outputs

    def has_history(self, value: Value) -> bool:
        """Whether a gradient flows to a value."""
        first = self.seen.get(value.key)
        return first is not None and first.edge is not None

    def without_history(self) -> Iterator[int]:
        """The ids of nodes through which no gradient flows, though one could."""
        for node in _all(self.top):
            could = node.op in CONTROL.values() or (isinstance(node.op, Op) and node.op.differentiable)
            cut = could and not any(map(self.has_history, node.outputs))
            if cut and any(map(self.has_history, node.values)):
                yield node.id

    def custom(self) -> tuple[str, ...]:
        """The names of what has a gradient that does not follow from the recorded op."""
        found: dict[str, None] = {}
        for node in _all(self.top):
            for value in node.outputs if isinstance(node.op, Op) else ():
                first = self.seen.get(value.key)
                made = None if first is None else first.grad_fn
                if made is not None and made.op is not node.op and not self._is_known(made.op, node):
                    found[made.name()] = None
        return tuple(found)

    @staticmethod
    def _is_known(op: Any, node: Node) -> bool:
        """Whether an op of the tape is one of the library's."""
        return isinstance(op, Op)


def _all(nodes: Sequence[Node]) -> Iterator[Node]:
    for node in nodes:
        yield node
        for _, region in node.regions:
            yield from _all(region.nodes)
