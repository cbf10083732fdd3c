"""An application of an operator: what its rule is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from common.core.errors import ArgumentError
from common.tools.onnx.host_values import tensor
from common.tools.onnx.records import OnnxGraph, OnnxNode, Reference

OnnxMeaning = Callable[..., Any]
"""A rule: of an `Applied` and the operands (tensors, known arrays, lists of tensors, None for one that is left out);
it returns the result, or a list of several."""

MEANINGS: dict[str, OnnxMeaning] = {}


class Applied:
    """A node of a model while it runs.

    Attributes
    ----------
    opset : version of the operators.
    inside : runs a graph among the attributes, for given inputs.
    sizes : of the run, sizes of a trace by the name of what holds them as floats.
    """

    def __init__(
        self,
        node: OnnxNode,
        opset: int,
        inside: Callable[..., list[Any]],
        given: dict[str, Any],
        sizes: dict[str, np.ndarray],
    ) -> None:
        self.node, self.opset, self.inside, self._given, self.sizes = node, opset, inside, given, sizes
        self.place = node.place
        self.nout = len(node.outputs)

    def wants(self, i: int) -> bool:
        """Whether somebody reads result i."""
        return i < self.nout and bool(self.node.outputs[i])

    def get(self, name: str, default: Any = None) -> Any:
        """An attribute.

        Raises
        ------
        ArgumentError : it is of another kind than its default.
        """
        found = self.node.attrs.get(name, default)
        if isinstance(found, Reference):
            found = self._given.get(found.name, default)
        if found is None or default is None or isinstance(found, type(default)):
            return found
        if isinstance(default, float) and isinstance(found, int):
            return float(found)
        raise ArgumentError(f"its attribute {name!r} is {found!r}, not of type {type(default).__name__}")

    def need(self, name: str, kind: type) -> Any:
        """An attribute that has to be there.

        Raises
        ------
        ArgumentError : it is not, or is of another kind.
        """
        found = self.get(name)
        if not isinstance(found, kind):
            raise ArgumentError(f"its attribute {name!r} is {found!r}, not of type {kind.__name__}")
        return found

    def graph(self, name: str) -> OnnxGraph:
        """A graph among the attributes."""
        found: OnnxGraph = self.need(name, OnnxGraph)
        return found


def meaning(*names: str) -> Callable[[OnnxMeaning], OnnxMeaning]:
    """Decorator: the rule of operators, whose operands are tensors, known or not."""

    def register(made: OnnxMeaning) -> OnnxMeaning:
        MEANINGS.update(dict.fromkeys(names, made))
        return made

    return register


def of_tensors(*names: str) -> Callable[[OnnxMeaning], OnnxMeaning]:
    """Decorator: the rule of operators, whose operands are made tensors."""

    def register(made: OnnxMeaning) -> OnnxMeaning:
        def apply(a: Applied, *x: Any) -> Any:
            return made(a, *map(tensor, x))

        MEANINGS.update(dict.fromkeys(names, apply))
        return made

    return register


def axis_of(axis: int, rank: int, what: str) -> int:
    """A dimension counted from the front.

    Raises
    ------
    ArgumentError : there is none.
    """
    if not -rank <= axis < max(rank, 1):
        raise ArgumentError(f"{what} {axis} of {rank} dimensions")
    return axis + rank if axis < 0 else axis


def shape_of(x: Any) -> list[Any]:
    """Sizes of a tensor, of a known array."""
    return list(x.shape)


def is_known(x: Sequence[Any]) -> bool:
    """Whether all operands are known arrays."""
    return all(isinstance(each, np.ndarray) for each in x)
