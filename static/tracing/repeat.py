"""What a program does again and again with other operands of the same forms, recorded once and then copied.

An optimiser updates a hundred parameters by the same ops. To copy their nodes takes a tenth of the time of recording
them: nothing is dispatched, promoted or looked up again. The nodes are those that recording would have made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from common.dim import Dim
from common.tensor import TensorBase
from static.graph import Node, Value

if TYPE_CHECKING:
    from static.tracing.trace import Trace

Made = Mapping[str, TensorBase]


class Pattern(NamedTuple):
    """What was recorded once: the nodes, the scope around them, the values they began with, and their results."""

    nodes: list[Node]
    scope: str
    given: list[Value]
    results: dict[str, Value]


def repeated(trace: Trace, name: Any, given: Sequence[TensorBase], make: Callable[[], Made]) -> Made:
    """What ``make()`` returns, a function of the given tensors and of what `name` stands for.

    It is called once per name, forms of the tensors, and line of the user's; where it writes to a tensor or sets a
    gradient, each time. Guards on sizes that it meets are those of the first time.
    """
    values = [trace.payload(x) for x in given]
    if trace.regions:
        return make()
    first = {v.key: i for i, v in reversed(list(enumerate(values)))}
    key = name, trace._source(), *((v.dtype, *map(_form, v.shape), v.spec.weak, first[v.key]) for v in values)
    scope = "/".join(trace.scope)
    known = trace.patterns.get(key)
    if known is not None:
        return _copied(trace, known, values, scope)
    start, state, grads = len(trace.nodes), dict(trace._values), dict(trace.grads)
    made = make()
    if grads == trace.grads and all(v is state.get(x, trace._original[x]) for x, v in trace._values.items()):
        nodes = [node for node in trace.nodes[start:] if node.op is not None]
        trace.patterns[key] = Pattern(nodes, scope, values, {k: trace.payload(x) for k, x in made.items()})
    return made


def _form(size: Any) -> Any:
    return size.terms if isinstance(size, Dim) else size


def _copied(trace: Trace, known: Pattern, values: Sequence[Value], scope: str) -> Made:
    new = {old.key: value for old, value in zip(known.given, values, strict=True)}
    for node in known.nodes:
        operands = [new.get(x.key, x) if type(x) is Value else x for x in node.operands]
        specs = [value.spec for value in node.outputs]
        inside = scope + node.scope[len(known.scope) :]
        assert node.op is not None
        copy = trace.append(node.op, operands, node.attrs, specs, node.source, inside)
        for old, value in zip(node.outputs, copy.outputs):
            new[old.key] = value
    return {name: trace.wrap(new.get(value.key, value)) for name, value in known.results.items()}
