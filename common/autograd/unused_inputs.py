"""Why an input of `grad` gets no gradient: which one it is, by name, and where its path was cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from common.autograd.backward_pass import collect
from common.core.errors import GradientError
from common.tensor.base import TensorBase
from common.tensor.node import Edge, Node


def require_grad(inputs: Sequence[Any]) -> None:
    """Refuse inputs that have no gradient.

    Raises
    ------
    GradientError : names the first of them.
    """
    for position, x in enumerate(inputs):
        if not x.requires_grad:
            raise GradientError(
                f"One of the differentiated Tensors does not require grad ({_described(position, x)}): call "
                "requires_grad_() on it before it is used; what is made under no_grad() or by detach() has no history"
            )


def refuse_unused(roots: Sequence[Any], inputs: Sequence[Any]) -> list[Node] | None:
    """Refuse inputs that no path of the graph leads to, as long as the graph still tells why.

    Returns
    -------
    list of Node
        Those that the roots reach, in descending number; None where a root is no tensor with a gradient.

    Raises
    ------
    GradientError : see `unused`.
    """
    edges = [getattr(root, "edge", None) for root in roots]
    if None in edges:
        return None  # which is an error of its own
    leaves: dict[int, Edge] = {}
    order = collect(edges, outside=leaves)
    nodes = {id(node) for node in order}
    missing = [x for x in inputs if _id(x.edge) not in nodes and _id(x.edge) not in leaves]
    if missing:
        raise unused(roots, inputs, missing, order)
    return order


def unused(roots: Sequence[Any], inputs: Sequence[Any], missing: Sequence[Any], order: Sequence[Node]) -> GradientError:
    """The error for inputs without a gradient: which, and what is known of the reason.

    Parameters
    ----------
    roots, inputs : of the pass.
    missing : the inputs that get none.
    order : the nodes that the roots reach.
    """
    lost = {id(x) for x in missing}
    names = "; ".join(_described(i, x) for i, x in enumerate(inputs) if id(x) in lost)
    reasons = [text for x in missing[:3] for text in _reasons(roots, x, order)]
    return GradientError(
        f"One of the differentiated Tensors ({names}) appears to not have been used in the graph. Set "
        f"allow_unused=True if this is the desired behavior.{''.join(f' {r}' for r in dict.fromkeys(reasons))}"
    )


def _described(position: int, x: Any) -> str:
    """An input by position and name; one that has no name by its shape."""
    name = getattr(x, "name", "") if isinstance(x, TensorBase) else ""
    if name:
        return f"input {position}, parameter {name!r}"
    return f"input {position}, of shape {tuple(x.shape)}" if isinstance(x, TensorBase) else f"input {position}"


def _reasons(roots: Sequence[Any], x: Any, order: Sequence[Node]) -> Iterator[str]:
    """Reasons for the end of the path, from the graph."""
    if not isinstance(x, TensorBase):
        return
    passed = [found for found in order if any(_id(edge) == _id(x.edge) for edge in found.edges)]
    if passed:
        file, line, _ = passed[-1].source
        yield f"{passed[-1].name()} at {file}:{line} uses it, but no gradient comes that way."
        return
    node = x.grad_fn
    made = [root.grad_fn if isinstance(root, TensorBase) else root.node for root in roots]
    if node is not None and all(getattr(root, "number", -1) < node.number for root in made):
        file, line, _ = node.source
        yield (
            f"The input is the result of {node.name()} at {file}:{line}, which ran after the outputs were made: "
            "differentiate with respect to the tensor from which they were made."
        )
        return
    readers = [found for found in order if _reads_without_history(found, x)]
    for reader in readers[-1:]:
        file, line, _ = reader.source
        yield (
            f"{reader.name()} at {file}:{line} reads its values, but without its history: it was cut by detach(), "
            ".data, no_grad() or numpy()."
        )
    if not readers:
        yield (
            "No path of the graph leads to it: the outputs do not use it, or detach(), .data, no_grad() or numpy() cut "
            "it off before an op that saves no values."
        )


def _reads_without_history(node: Node, x: TensorBase) -> bool:
    """Whether a node has saved memory of `x` for an operand that gets no gradient."""
    if type(node.saved) is not tuple:
        return False
    operands = zip(getattr(node.op, "saved_inputs", ()), node.saved)
    return any(node.edges[index] is None and _same_memory(saved, x.payload) for index, saved in operands)


def _same_memory(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return bool(np.may_share_memory(a, b))
    return a is b


def _id(edge: Edge) -> int:
    return id(edge[0] if type(edge) is tuple else edge)
