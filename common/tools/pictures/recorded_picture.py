"""The picture of a recorded graph."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from common.autograd.backward_pass import collect
from common.autograd.recorded_graph import edges_of
from common.autograd.region import Recorded
from common.core import scopes as parts
from common.core.errors import ArgumentError
from common.tensor.base import TensorBase
from common.tensor.node import Edge, Node, next_number
from common.tensor.observers import Watching
from common.tools.pictures.diagram import PictureItem, Port, settle
from common.tools.pictures.picture import Picture

__all__ = ["make_dot", "module_scopes"]


class module_scopes(Watching):
    """Context manager that notes which module records which node, for `make_dot`; free when it is not used.

    Examples
    --------
    >>> import dynamic as tw
    >>> model = tw.nn.Sequential(tw.nn.Linear(2, 3), tw.nn.Tanh())
    >>> with module_scopes() as scopes:
    ...     y = model(tw.zeros(1, 2))
    >>> scopes.of(y.grad_fn)
    ('Sequential', 'Tanh[1]')
    """

    def __init__(self) -> None:
        super().__init__(parts.recorder, lambda: self)
        self._numbers: list[int] = []
        self._paths: list[tuple[str, ...]] = []

    def mark(self, path: tuple[str, ...]) -> None:
        """From here on nodes belong to the module with this path."""
        self._numbers.append(next_number())
        self._paths.append(path)

    def of(self, node: Any) -> tuple[str, ...]:
        """Names from the outermost module to the one that recorded a node; empty if it was none."""
        position = bisect(self._numbers, node.number)
        return self._paths[position - 1] if position else ()


def make_dot(
    var: Any,
    params: Mapping[str, Any] | None = None,
    show_attrs: bool = False,
    show_saved: bool = False,
    scopes: module_scopes | None = None,
) -> Picture:
    """A picture of the graph that has recorded a tensor; the name is torchviz's.

    Parameters
    ----------
    var : a tensor or a sequence of them.
    params : names of leaves; parameters of modules have theirs without it.
    show_attrs : write the attributes of ops on them.
    show_saved : write the shapes of what a node keeps for backward on it.
    scopes : made by `module_scopes` around the forward pass; without it, nodes that read a parameter lie in the module
        that owns it.

    Returns
    -------
    Picture
        Values flow from the leaves to the results; `to_svg`, `to_dot`, `to_text` and `save` draw it. What a `function`
        has recorded inside is a scope of its name.

    Raises
    ------
    ArgumentError : `var` has no graph.

    Examples
    --------
    >>> import dynamic as tw
    >>> w = tw.tensor([1.0, 2.0], requires_grad=True)
    >>> print(make_dot((w * w).sum(), params={"w": w}).to_text())
    output  float32[]
    └─ SumBackward0  float32[]
       └─ MulBackward0  float32[2]
          ├─ w #1  float32[2]
          └─ w #1
    """
    roots = list(var) if isinstance(var, (list, tuple)) else [var]
    if not all(isinstance(x, TensorBase) and x.requires_grad for x in roots):
        raise ArgumentError("make_dot() takes tensors that require grad: others have no graph")
    names = {id(x): name for name, x in (params or {}).items()}
    return _RecordedItems(roots, names, show_attrs, show_saved, scopes).picture()


class _RecordedItems:
    """Items of a recorded graph."""

    def __init__(
        self, roots: Sequence[Any], names: dict[int, str], attrs: bool, saved: bool, scopes: module_scopes | None
    ) -> None:
        self.roots, self.names, self.attrs, self.saved, self.scopes = roots, names, attrs, saved, scopes
        self.alias: dict[Any, Edge] = {}
        self.inside: dict[Node, tuple[str, ...]] = {}
        self.nodes = sorted(self._open(collect(edges_of(roots))), key=lambda node: node.number)
        self.leaves: dict[int, TensorBase] = {}

    def _open(self, nodes: list[Node]) -> Iterator[Node]:
        """The nodes, and in the place of a region those that it has recorded."""
        waiting, seen = list(nodes), set(nodes)
        while waiting:
            node = waiting.pop()
            inner = node.saved[0] if type(node.saved) is tuple and node.saved else None
            if not isinstance(inner, Recorded):
                yield node
                continue
            for position, edge in enumerate(inner.outputs):
                self.alias[node, position] = edge
            for view, edge in zip(inner.inputs, node.edges, strict=True):
                if view is not edge:
                    self.alias[_port(view)] = edge
            found = [x for x in collect(inner.outputs, inner.start) if x not in seen]
            seen.update(found)
            path = (*self.inside.get(node, ()), node.op.name)
            self.inside |= dict.fromkeys(found, path)
            waiting += found

    def _resolved(self, edge: Edge) -> Edge:
        """Where an edge leads to in the picture, through the borders of regions."""
        while edge is not None and (found := self.alias.get(_port(edge), self)) is not self:
            edge = found
        return edge

    def picture(self) -> Picture:
        """All items: leaves, nodes, results."""
        edges = [[self._resolved(edge) for edge in node.edges] for node in self.nodes]
        ends = [self._resolved(x.edge) for x in self.roots]
        for edge in (*(e for each in edges for e in each), *ends):
            if isinstance(edge, TensorBase):
                self.leaves[id(edge)] = edge
        forms = self._forms(edges, ends)
        place: dict[Any, int] = {id(leaf): i for i, leaf in enumerate(self.leaves.values())}
        items = [self._leaf(leaf) for leaf in self.leaves.values()]
        place.update((node, i) for i, node in enumerate(self.nodes, len(items)))

        def port(edge: Edge) -> Port | None:
            if edge is None:
                return None
            owner, output = _port(edge)
            return place[id(owner) if isinstance(owner, TensorBase) else owner], output

        for node, operands in zip(self.nodes, edges, strict=True):
            results = tuple(forms.get((node, i), "") for i in range(max(getattr(node.op, "nout", 1), 1)))
            items.append(self._node(node, tuple(map(port, operands)), results))
        for i, (x, end) in enumerate(zip(self.roots, ends, strict=True)):
            label = "output" if len(self.roots) == 1 else f"output {i}"
            items.append(PictureItem(label, "output", (port(end),), (_form(x.shape, x.dtype),)))
        return Picture(settle(items), "recorded graph")

    def _leaf(self, leaf: TensorBase) -> PictureItem:
        own = getattr(leaf, "name", "")
        name = self.names.get(id(leaf)) or own or "leaf"
        return PictureItem(
            name, "parameter" if own else "input", (), (_form(leaf.shape, leaf.dtype),), (), type(leaf).__name__
        )

    def _node(self, node: Node, operands: tuple[Port | None, ...], results: tuple[str, ...]) -> PictureItem:
        details = []
        if self.attrs and isinstance(node.attrs, Mapping) and node.attrs:
            details += [f"{name}={value}" for name, value in node.attrs.items()]
        if self.saved and type(node.saved) is tuple:
            kept = [_form(x.shape, x.dtype) for x in node.saved if isinstance(x, np.ndarray)]
            details += [f"saves {' '.join(kept)}"] if kept else []
        file, line, _ = node.source
        return PictureItem(
            node.name(), "op", operands, results, self._scope(node), ", ".join(details), f"{file}:{line}"
        )

    def _scope(self, node: Node) -> tuple[str, ...]:
        inside = self.inside.get(node, ())
        if self.scopes is not None:
            return (*inside, *self.scopes.of(node))
        for edge in node.edges:
            while isinstance(edge, Node) and edge.op.kind == "view":
                edge = edge.edges[0]
            name = getattr(edge, "name", "") if isinstance(edge, TensorBase) else ""
            if "." in name:
                return (*inside, *name.split(".")[:-1])
        return inside

    def _forms(self, edges: list[list[Edge]], ends: list[Edge]) -> dict[Any, str]:
        """Shape and dtype of every result: what reads it knows them, and nodes come after what they read."""
        forms = {_port(end): _form(x.shape, x.dtype) for x, end in zip(self.roots, ends, strict=True)}
        for node, operands in zip(reversed(self.nodes), reversed(edges), strict=True):
            for i, edge in enumerate(operands):
                if edge is not None and _port(edge) not in forms and (form := self._read(node, i, forms)):
                    forms[_port(edge)] = form
        return forms

    def _read(self, node: Node, position: int, forms: dict[Any, str]) -> str:
        """Shape and dtype of what a node reads at a position."""
        if node.op.kind == "function":
            spec = node.op.inputs[position]
            return "" if spec is None else _form(spec.shape, spec.dtype)  # type: ignore[attr-defined]
        form = node.fit and node.fit[position]
        if form is None:  # tensors of one shape: all are of the result's form
            return forms.get((node, 0), "") if node.op.kind == "elementwise" else ""
        return _form(*form) if type(form) is tuple else ""


def _port(edge: Edge) -> tuple[Any, int]:
    return edge if type(edge) is tuple else (edge, 0)


def _form(shape: Sequence[Any], dtype: Any) -> str:
    return f"{np.dtype(dtype).name}[{', '.join(map(str, shape))}]"
