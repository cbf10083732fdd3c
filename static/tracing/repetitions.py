"""Repeated calls with operands of the same forms: recorded once, then copied.

An optimiser updates a hundred parameters by the same ops. Copying their nodes is 10x as fast as recording them: nothing
is dispatched, promoted or looked up again. The copies are equal to the nodes that recording would make.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from common.core.sizes import Dim
from common.tensor.base import TensorBase
from static.graph import Node, Value
from static.graph.patterns import Copy, Line, Pattern
from static.tracing.recorder import Recorder

Made = Mapping[str, TensorBase]


def repeated(trace: Recorder, name: Any, given: Sequence[TensorBase], make: Callable[[], Made]) -> Made:
    """Call ``make()``, a function of the given tensors and of the things that `name` stands for.

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
        if nodes:
            trace.patterns[key] = _pattern(nodes, scope, values, {k: trace.payload(x) for k, x in made.items()})
    return made


def _form(size: Any) -> Any:
    return size.terms if isinstance(size, Dim) else size


def _pattern(nodes: list[Node], scope: str, given: list[Value], results: Mapping[str, Value]) -> Pattern:
    """The pattern of nodes that were recorded in a scope."""
    places: dict[Any, int] = {value.key: i for i, value in enumerate(given)}
    own = {value.key for node in nodes for value in node.outputs}
    outside: list[Any] = []
    for x in (*(x for node in nodes for x in node.operands), *results.values()):
        if (name := _name(x)) not in places and name not in own:
            places[name] = len(given) + len(outside)
            outside.append(x)
    count, lines = len(given) + len(outside), []
    for node in nodes:
        assert node.op is not None
        operands, specs = [places[_name(x)] for x in node.operands], [value.spec for value in node.outputs]
        lines.append(Line(node.op, operands, node.attrs, specs, node.source, node.scope[len(scope) :]))
        for value in node.outputs:
            places[value.key] = count
            count += 1
    ends = {name: places[value.key] for name, value in results.items()}
    return Pattern(nodes[0].id, nodes[-1].id, [v.key for v in given], outside, lines, ends)


def _name(x: Any) -> Any:
    return x.key if type(x) is Value else id(x)


def _copied(trace: Recorder, known: Pattern, values: list[Value], scope: str) -> Made:
    hand, append = [*values, *known.outside], trace.append
    start = len(trace.nodes)
    for op, operands, attrs, specs, source, inside in known.lines:
        hand += append(op, [hand[i] for i in operands], attrs, specs, source, scope + inside).outputs
    trace.copies[trace.nodes[start].id] = Copy(known, [value.key for value in values])
    return {name: trace.wrap(hand[place]) for name, place in known.results.items()}
