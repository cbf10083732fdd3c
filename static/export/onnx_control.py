"""Control flow in ONNX: a switch as If, a loop over rows as Scan, other loops as Loop.

Regions are closed; in ONNX their constants are names of the graph outside, which graphs inside nodes may read.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any

import numpy as np

from common.core.polynomials import Terms
from common.tools.onnx.records import Declared
from static.export.onnx_ops import OnnxRule, Writer
from static.graph import Node, Value
from static.graph.regions import LoopParts, branches

INT, BOOL = np.dtype(np.int64), np.dtype(bool)


def counts(terms: Terms) -> bool:
    """Whether a size depends on how often a loop runs."""
    return any(
        atom[0] == "room" or (atom[0] in ("//", "%") and (counts(atom[1]) or counts(atom[2])))
        for atoms, _ in terms
        for atom in atoms
    )


def operand_dtypes(node: Node) -> list[Any]:
    """The dtypes in which regions read the operands of their node."""
    wanted: list[Any] = [INT] * len(node.operands)
    if node.name == "switch":
        for region, uses in branches(node):
            for at, value in zip(uses, region.inputs, strict=True):
                wanted[1 + at] = value.dtype
        return wanted
    parts = LoopParts(node)
    read = [*parts.carried, *parts.rows, *parts.constants]
    for at, value in zip(read, parts.body.inputs, strict=True):
        wanted[at] = value.dtype
    if parts.condition is not None:
        for at, value in zip([*parts.carried, *parts.tests], parts.condition.inputs, strict=True):
            wanted[at] = value.dtype
    return wanted


def _result(w: Writer, name: str, value: Value) -> Declared:
    """The declaration of a result of the graph that is being written; it has a name of its own."""
    made: Declared = w.described(w.add("Identity", [name]), value)
    return made


def _switch(w: Writer, node: Node, x: list[str]) -> list[str]:
    """index == 0 ? branch 0 : index == 1 ? branch 1 : ... ; the last one needs no question."""
    parts = branches(node)

    def branch(i: int) -> Any:
        region, uses = parts[i]
        with w.inside():
            names = w.region(region, [x[1 + at] for at in uses])
            return w.graph(f"branch{i}", [], list(map(_result, repeat(w), names, region.outputs)))

    def choice(i: int) -> list[str]:
        here = w.add("Equal", [x[0], w.constant(np.array(i, INT))])
        rest = branch(i + 1)
        if i + 2 < len(parts):
            with w.inside():
                names = choice(i + 1)
                rest = w.graph(f"branches{i + 1}", [], list(map(_result, repeat(w), names, node.outputs)))
        return _several(w, "If", [here], len(node.outputs), then_branch=branch(i), else_branch=rest)

    if len(parts) == 1:
        return [w.add("Identity", [name]) for name in w.region(parts[0][0], [x[1 + at] for at in parts[0][1]])]
    return choice(0)


def _several(w: Writer, kind: str, x: list[str], count: int, **attrs: Any) -> list[str]:
    """A node with any number of results."""
    made = w.add(kind, x, count, **attrs)
    return [made] if isinstance(made, str) else list(made)


def _loop(w: Writer, node: Node, x: list[str]) -> list[str]:
    parts = LoopParts(node)
    if parts.condition is None and not parts.counted and len(parts.rows):
        return _scan(w, node, parts, x)
    limit = x[0] if parts.counted else "" if parts.condition is not None else w.scalar(parts.length, INT)
    carried = [x[i] for i in parts.carried]
    start = ""
    if parts.condition is not None:
        start = _test(w, parts, carried, x)
        carried.append(w.constant(np.array(0, INT)))
    own = parts.body.inputs[: parts.n]
    read = [i for i in parts.stacked if node.outputs[i].key in w.read]
    with w.inside():
        step, asked = w.new("step"), w.new("asked")
        inside = [w.new("carried") for _ in own]
        inputs = [w.declared(step, INT), w.declared(asked, BOOL), *map(w.described, inside, own)]
        row = step
        if parts.backwards and len(parts.rows):
            row = w.add("Sub", [w.add("Sub", [limit, w.constant(np.array(1, INT))]), step])
        rows = [w.add("Gather", [x[i], row], axis=0) for i in parts.rows]
        count = w.new("count")
        results = w.region(parts.body, [*inside, *rows, *(x[i] for i in parts.constants)])
        told = [_result(w, results[i], parts.body.outputs[i]) for i in (*range(parts.n), *read)]
        on = asked
        if parts.condition is not None:
            on = _test(w, parts, results[: parts.n], x)
            inputs.append(w.declared(count, INT))
            told.insert(parts.n, w.declared(w.add("Add", [count, w.constant(np.array(1, INT))]), INT))
        body = w.graph("body", inputs, [w.declared(w.add("Identity", [on]), BOOL), *told])
    made = _several(w, "Loop", [limit, start, *carried], len(told), body=body)
    names = [""] * len(node.outputs)
    if parts.condition is not None:
        names[-1] = made.pop(parts.n)
        w.room(parts.room, names[-1])
    for i, name in zip((*range(parts.n), *read), made, strict=True):
        names[i] = _flipped(w, name) if parts.backwards and i >= parts.n else name
    return names


def _test(w: Writer, parts: LoopParts, carried: Sequence[str], x: list[str]) -> str:
    assert parts.condition is not None
    (answer,) = w.region(parts.condition, [*carried, *(x[i] for i in parts.tests)])
    return str(answer)


def _flipped(w: Writer, stack: str) -> str:
    ends = (-1, np.iinfo(np.int64).min, 0, -1)
    made: str = w.add("Slice", [stack, *(w.constant(np.array([n], INT)) for n in ends)])
    return made


def _scan(w: Writer, node: Node, parts: LoopParts, x: list[str]) -> list[str]:
    own = parts.body.inputs[: parts.n + len(parts.rows)]
    read = [*range(parts.n), *(i for i in parts.stacked if node.outputs[i].key in w.read)]
    with w.inside():
        inside = [w.new("carried" if i < parts.n else "row") for i in range(len(own))]
        results = w.region(parts.body, [*inside, *(x[i] for i in parts.constants)])
        told = [_result(w, results[i], parts.body.outputs[i]) for i in read]
        body = w.graph("body", list(map(w.described, inside, own)), told)
    ways = {}
    if parts.backwards:
        ways["scan_input_directions"] = [1] * len(parts.rows)
        if len(read) > parts.n:
            ways["scan_output_directions"] = [1] * (len(read) - parts.n)
    given = [x[i] for i in (*parts.carried, *parts.rows)]
    made = _several(w, "Scan", given, len(read), body=body, num_scan_inputs=len(parts.rows), **ways)
    names = [""] * len(node.outputs)
    for i, name in zip(read, made, strict=True):
        names[i] = name
    return names


RULES: dict[str, OnnxRule] = {"switch": _switch, "loop": _loop}
