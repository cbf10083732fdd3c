"""Walks over the recorded graph: every node once, the order of a backward pass, and the graph in networkx."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from common.autograd.backward_pass import collect, leading_to
from common.core.digraph import digraph
from common.core.errors import GradientError
from common.tensor.accumulate_grad import AccumulateGrad, accumulate_grad
from common.tensor.base import TensorBase
from common.tensor.node import Edge, Node

if TYPE_CHECKING:
    import networkx as nx


class GradientEdge(NamedTuple):
    """A place of the graph that a gradient passes: `grad` takes it as an input, in place of the tensor.

    Attributes
    ----------
    node : what made the tensor; for a leaf its AccumulateGrad.
    output_nr : which of the node's results it is.
    form : shape and dtype of the tensor, where they are known.
    """

    node: Any
    output_nr: int
    form: Any = None

    @property
    def ownership_token(self) -> None:
        """In PyTorch this keeps the node alive; here `node` does."""
        return None

    @property
    def edge(self) -> Edge:
        """The same place in the tape's words."""
        if isinstance(self.node, AccumulateGrad):
            return self.node.variable
        return (self.node, self.output_nr) if self.output_nr else self.node

    @property
    def requires_grad(self) -> bool:
        """True: what needs no gradient has no place in the graph."""
        return True


def get_gradient_edge(tensor: TensorBase) -> GradientEdge:
    """The place of the graph that the gradient of `tensor` passes; keeps the graph alive, but not the tensor.

    Parameters
    ----------
    tensor : it requires grad.

    Raises
    ------
    GradientError : it does not.
    """
    if not tensor.requires_grad:
        raise GradientError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    node, array = tensor.grad_fn, tensor.payload
    form = (array.shape, array.dtype) if isinstance(array, np.ndarray) else None
    return GradientEdge(accumulate_grad(tensor) if node is None else node, tensor.output_nr, form)


def iter_graph(roots: Any) -> Iterator[Node | AccumulateGrad]:
    """Every node that the roots reach, once: descending in number, then the leaves as the nodes meet them.

    Parameters
    ----------
    roots : a tensor or a sequence of them.

    Examples
    --------
    >>> import dynamic as tw
    >>> x = tw.tensor([2.0, 3.0], requires_grad=True)
    >>> [node.name() for node in iter_graph((x * x).sum())]
    ['SumBackward0', 'MulBackward0', 'AccumulateGrad']
    """
    nodes, leaves = _reached(edges_of(roots))
    yield from nodes
    for leaf in leaves:
        yield accumulate_grad(leaf)


def execution_order(roots: Any, inputs: Any = None) -> list[Node]:
    """The nodes that a backward pass from `roots` handles, in its order: strictly descending in number.

    Parameters
    ----------
    roots : a tensor or a sequence of them.
    inputs : as in `backward` and `grad`: only nodes on a path to these tensors are handled.

    Returns
    -------
    list of Node
        A node is left out if no rule sends it a gradient. What a `Function`, or the inside of a `function`, will not
        send is known only when it runs: their operands all count.
    """
    starts = [edge for edge in edges_of(roots) if edge is not None]
    order = collect(starts)
    useful = None if inputs is None else leading_to(order, set(edges_of(inputs)))
    reached = {_owner(edge) for edge in starts}
    handled = []
    for node in order:
        if node not in reached or (useful is not None and node not in useful):
            continue
        handled.append(node)
        rules = getattr(node.op, "rules", None) or node.edges
        reached.update(_owner(edge) for edge, rule in zip(node.edges, rules) if edge is not None and rule is not None)
    return handled


def to_networkx(roots: Any) -> nx.DiGraph:
    """The recorded graph in networkx, with the schema of a compiled function's graph.

    Parameters
    ----------
    roots : a tensor or a sequence of them.

    Returns
    -------
    networkx.DiGraph
        Edges lead from operands to what reads them. The leaves come first, with op "input" and their AccumulateGrad as
        "node"; then the nodes, numbered on in program order. A gradient flows against the edges.

    Examples
    --------
    >>> import dynamic as tw
    >>> x = tw.tensor([2.0, 3.0], requires_grad=True)
    >>> graph = to_networkx((x * x).sum())
    >>> list(graph.nodes(data="op")), list(graph.edges(data="operands"))
    ([(0, 'input'), (1, 'mul'), (2, 'sum')], [(0, 1, (0, 1)), (1, 2, (0,))])
    """
    nodes, leaves = _reached(edges_of(roots))
    nodes.reverse()
    records: list[tuple[int, Any, str]] = [(i, accumulate_grad(leaf), "input") for i, leaf in enumerate(leaves)]
    records += [(i, node, node.op.name) for i, node in enumerate(nodes, len(leaves))]
    ids = {id(owner): i for i, owner in enumerate([*leaves, *nodes])}

    def made(edge: Edge) -> tuple[int, int] | None:
        number = ids.get(id(_owner(edge)))
        return None if number is None else (number, edge[1] if type(edge) is tuple else 0)

    return digraph(records, ((ids[id(node)], [made(edge) for edge in node.edges]) for node in nodes))


def edges_of(tensors: Any) -> list[Edge]:
    """The edges of a tensor or a sequence of them."""
    several = isinstance(tensors, Sequence) and not isinstance(tensors, (TensorBase, GradientEdge))
    return [x.edge for x in (tensors if several else (tensors,))]


def _owner(edge: Edge) -> Any:
    """The node or leaf that an edge leads to."""
    return edge[0] if type(edge) is tuple else edge


def _reached(roots: Sequence[Edge]) -> tuple[list[Node], list[TensorBase]]:
    """The nodes, in descending number, and the leaves, in the order in which the nodes meet them."""
    nodes = collect(roots)
    edges = (edge for edges in (roots, *(node.edges for node in nodes)) for edge in edges)
    leaves = {id(edge): edge for edge in edges if isinstance(edge, TensorBase)}
    return nodes, list(leaves.values())
