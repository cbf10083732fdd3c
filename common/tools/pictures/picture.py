"""Pictures of graphs, as users get them: text, DOT and SVG."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from common.core.errors import ArgumentError
from common.tools.pictures.diagram import Diagram
from common.tools.pictures.dot import dot
from common.tools.pictures.svg import svg
from common.tools.pictures.text import tree


class Picture(Diagram):
    """A graph to be looked at; `print` it for a tree. In a notebook it shows itself as SVG.

    Parameters
    ----------
    items : in program order.
    title : of what.
    legend : lines that explain names of sizes.

    Examples
    --------
    >>> import dynamic as tw
    >>> x = tw.tensor([2.0, 3.0], requires_grad=True)
    >>> picture = tw.autograd.graph.make_dot((x * x).sum(), params={"x": x})
    >>> [item.label for item in picture.items]
    ['x', 'MulBackward0', 'SumBackward0', 'output']
    >>> picture.to_svg()[:4]
    '<svg'
    """

    def to_text(self, max_items: int = 1000, max_depth: int = 60) -> str:
        """A tree from the results to what they are made of; see `common.tools.pictures.text`."""
        return tree(self, max_items, max_depth)

    def to_dot(self) -> str:
        """The picture in the language of Graphviz; scopes are clusters."""
        return dot(self)

    def to_svg(self, max_items: int = 2000) -> str:
        """The picture as a document of its own, without scripts; made here, not by Graphviz.

        Parameters
        ----------
        max_items : of a larger picture, the innermost scopes are drawn as one item each, as far as is needed.

        Raises
        ------
        ArgumentError : too many items even so.
        """
        return svg(self.at_most(max_items))

    def to_json(self) -> str:
        """Everything that is drawn, as JSON: title, legend, items with their operands as (item, result)."""
        items = [item._asdict() for item in self.items]
        return json.dumps({"title": self.title, "legend": self.legend, "items": items}, indent=1)

    def to_networkx(self) -> Any:
        """The picture as a networkx.MultiDiGraph: items are nodes, with what they are; edges carry shapes."""
        import networkx as nx

        graph = nx.MultiDiGraph(title=self.title)
        for position, item in enumerate(self.items):
            graph.add_node(position, **item._asdict())
        for (made, result), (reader, operand) in self.edges:
            graph.add_edge(made, reader, operand=operand, value=self.items[made].results[result])
        return graph

    @property
    def source(self) -> str:
        """`to_dot`, by the name that Graphviz's Python package has for it."""
        return self.to_dot()

    def save(self, path: str | Path) -> Path:
        """Write a file: ``.svg``, ``.dot`` or ``.gv``, ``.txt``, or ``.json``.

        Raises
        ------
        ArgumentError : another ending.
        """
        path = Path(path)
        writers = {".svg": self.to_svg, ".dot": self.to_dot, ".gv": self.to_dot, ".txt": self.to_text}
        writers[".json"] = self.to_json
        if path.suffix not in writers:
            raise ArgumentError(f"a picture is saved as {', '.join(writers)}, not as {path.suffix!r}")
        path.write_text(writers[path.suffix](), encoding="utf-8")
        return path

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"<Picture {self.title!r}: {len(self.items)} items>"

    def _repr_svg_(self) -> str:
        return self.to_svg()
