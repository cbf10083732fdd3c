"""The picture of a compiled program's graph."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from common.core.sizes import Dim
from common.core.spec import Spec, named
from common.tools.pictures.diagram import PictureItem, Port, settle
from common.tools.pictures.picture import Picture
from static.graph import Graph, Node, Value

#: Names of sizes that follow from the arguments.
_LETTERS = "nmkpqrstuvwabcdefghijl"
_ATOM = re.compile(r"arg\d+\.shape\[\d+\]")


def picture_of(graph: Graph, title: str = "", outputs: Sequence[str] = ()) -> Picture:
    """A graph as a neutral picture: its nodes, its outputs and its writes.

    Parameters
    ----------
    outputs : names of the outputs.
    """
    shapes = _Shapes()
    place: dict[tuple[int, int], Port] = {}
    items: list[PictureItem] = []

    def add(item: PictureItem, values: Sequence[Value] = ()) -> None:
        place.update((value.key, (len(items), i)) for i, value in enumerate(values))
        items.append(item)

    for node in graph.nodes:
        operands = tuple(place[x.key] if type(x) is Value else None for x in node.operands)
        file, line, _ = node.source
        results = tuple(shapes.text(value.spec) for value in node.outputs)
        scope = tuple(node.scope.split("/")) if node.scope else ()
        detail = _detail(node)
        add(PictureItem(_label(node, graph), _kind(node, graph), operands, results, scope, detail, f"{file}:{line}"),
            node.outputs)  # fmt: skip
    for i, value in enumerate(graph.outputs):
        label = outputs[i] if i < len(outputs) else f"output {i}" if len(graph.outputs) > 1 else "output"
        add(PictureItem(label, "output", (place[value.key],), (shapes.text(value.spec),)))
    for effect in graph.effects:
        name = _input_name(effect.state.node)
        add(PictureItem(f"write {name}", "write", (place[effect.value.key],), (shapes.text(effect.value.spec),)))
    return Picture(settle(items), title, shapes.legend)


def _kind(node: Node, graph: Graph) -> str:
    if node.op is not None:
        return "op" if node.operands else "fixed"
    return "input" if str(node.attrs.get("name", "")).startswith("arg") else "parameter"


def _label(node: Node, graph: Graph) -> str:
    if node.op is None:
        return _input_name(node)
    return str(node.attrs["value"]) if not node.operands and "value" in node.attrs else node.name


def _input_name(node: Node) -> str:
    """The name of a captured tensor without the number that makes it unique."""
    name = str(node.attrs.get("name", "input"))
    return name if name.startswith("arg") else name.rpartition(".")[0] or name


def _detail(node: Node) -> str:
    numbers = [f"operand {i} is {x}" for i, x in enumerate(node.operands) if type(x) is not Value]
    hidden = ("name", "x_dtype") if node.op is not None else ("name",)
    attrs: Mapping[str, Any] = node.attrs
    return ", ".join(
        [*numbers, *(f"{k}={named(v)}" for k, v in attrs.items() if k not in hidden and type(v) is not Graph)]
    )


class _Shapes:
    """Shapes as text; each size of an argument has a letter, which the legend explains."""

    def __init__(self) -> None:
        self.letters: dict[str, str] = {}
        self.legend: list[str] = []

    def text(self, spec: Spec) -> str:
        """Such as ``float32[n, 16]``."""
        return f"{spec.dtype.name}[{', '.join(map(self._size, spec.shape))}]"

    def _size(self, size: Any) -> str:
        if not isinstance(size, Dim):
            return str(size)
        terms, _, value = named(size).rpartition("=")
        text = _ATOM.sub(self._letter, terms)
        if text == self.letters.get(terms) and not any(line.startswith(f"{text} = ") for line in self.legend):
            self.legend.append(f"{text} = {terms}, {value} when traced")
        return text

    def _letter(self, found: re.Match[str]) -> str:
        count = len(self.letters)
        fresh = _LETTERS[count] if count < len(_LETTERS) else f"n{count}"
        return self.letters.setdefault(found.group(), fresh)
