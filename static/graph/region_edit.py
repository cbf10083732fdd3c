"""Edits of the inputs and results of a node's regions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from common.core.spec import Spec
from static.graph.nodes import Effect, Graph, Node, Value
from static.graph.regions import LoopParts, close

Made = tuple[Node, Mapping[int, int]]
"""A node, and which of its results stand for which of the old one's."""


def replace_nodes(graph: Graph, make: Callable[[Node], Made | None]) -> Graph:
    """A graph in which some nodes are others, with the same ids and perhaps fewer, or more, results.

    Parameters
    ----------
    make : takes a node whose operands are those of the new graph; None keeps it.
    """
    new: dict[tuple[int, int], Value] = {}
    nodes = []
    for old in graph.nodes:
        operands = tuple(new[x.key] if type(x) is Value else x for x in old.operands)
        node = Node(old.id, old.op, operands, old.attrs, (v.spec for v in old.outputs), old.source, old.scope)
        made = make(node)
        places: Mapping[int, int] = {i: i for i in range(len(old.outputs))}
        if made is not None:
            node, places = made
        new.update(((old.id, i), node.outputs[place]) for i, place in places.items())
        nodes.append(node)
    effects = [Effect(new[e.state.key], new[e.value.key]) for e in graph.effects]
    return Graph([new[v.key] for v in graph.inputs], nodes, [new[v.key] for v in graph.outputs], effects)


class LoopEdit:
    """A loop as lists that can be changed.

    Attributes
    ----------
    carried : [operand, input of the body, result of the body, input of the condition or None, old result].
    rows, constants : [operand, input of the body].
    stacked : [result of the body, old result or None].
    tests : [operand, input of the condition].
    """

    def __init__(self, node: Node) -> None:
        self.node, parts = node, LoopParts(node)
        self.parts = parts
        operands, body, condition = node.operands, parts.body, parts.condition
        asked = [None] * parts.n if condition is None else condition.inputs
        self.carried: list[list[Any]] = [
            [operands[i], body.inputs[k], body.outputs[k], asked[k], k] for k, i in enumerate(parts.carried)
        ]
        given = [operands[i] for i in (*parts.rows, *parts.constants)]
        pairs = [[x, y] for x, y in zip(given, body.inputs[parts.n :], strict=True)]
        self.rows, self.constants = pairs[: len(parts.rows)], pairs[len(parts.rows) :]
        self.stacked: list[list[Any]] = [[body.outputs[i], i] for i in parts.stacked]
        self.tests = (
            []
            if condition is None
            else [[operands[i], x] for i, x in zip(parts.tests, condition.inputs[parts.n :], strict=True)]
        )

    def build(self, moved: Mapping[Any, Value] | None = None) -> Made:
        """The changed node.

        Parameters
        ----------
        moved : keys of values of the body in whose place an input is read.
        """
        old, parts = self.node, self.parts
        inputs = [entry[1] for entry in (*self.carried, *self.rows, *self.constants)]
        outputs = [entry[2] for entry in self.carried] + [entry[0] for entry in self.stacked]
        moved = moved or {}
        nodes = [node for node in parts.body.nodes if all(v.key not in moved for v in node.outputs)]
        body, free = close(nodes, inputs, outputs, moved)
        assert not free, "a body reads what it is not given"
        attrs = {
            **old.attrs, "body": body, "carried": len(self.carried), "rows": len(self.rows),
            "constants": len(self.constants),
        }  # fmt: skip
        attrs.pop("sums", None)
        operands = [*old.operands[: int(parts.counted)]]
        operands += [entry[0] for entry in (*self.carried, *self.rows, *self.constants, *self.tests)]
        specs = [Spec(x.spec.shape, x.dtype) for x in outputs[: len(self.carried)]]
        specs += [Spec((parts.length, *x.shape), x.dtype) for x in outputs[len(self.carried) :]]
        places = {entry[4]: i for i, entry in enumerate(self.carried)}
        first = len(self.carried)
        places.update({entry[1]: first + i for i, entry in enumerate(self.stacked) if entry[1] is not None})
        if parts.condition is not None:
            asked = [entry[3] for entry in self.carried] + [entry[1] for entry in self.tests]
            attrs["condition"], _ = close(parts.condition.nodes, asked, parts.condition.outputs, {})
            places[len(old.outputs) - 1] = len(specs)
            specs.append(old.outputs[-1].spec)
        return Node(old.id, old.op, tuple(operands), attrs, specs, old.source, old.scope), places
