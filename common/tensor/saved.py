"""What a node has saved, read back: as payloads, and as tensors with their history."""

from __future__ import annotations

from typing import Any

from common.autograd.node import Edge, Node
from common.tensor.base import NUMBERS, TensorBase, wrap


def opened(node: Node) -> Any:
    """The saved payloads of a node, unpacked where `saved_tensors_hooks` have packed them."""
    saved = node.saved
    return saved if saved is None or type(saved) is tuple else saved.open()


def saved_tensors(node: Node) -> tuple[Any, ...]:
    """The saved payloads of a node as tensors with their history, for recording the backward pass itself."""
    assert node.saved is not None
    op = node.op
    out: list[Any] = []
    if op.kind in ("region", "function", "compiled"):
        return node.saved
    saved = opened(node)
    for position, index in enumerate(op.saved_inputs):
        payload = saved[position]
        out.append(payload if isinstance(payload, NUMBERS) else with_edge(payload, node.edges[index]))
    shapes = len(op.saved_inputs)
    out.extend(saved[shapes : shapes + len(op.saved_shapes)])
    if op.saves_output:
        y = saved[-1]
        if isinstance(y, tuple):
            edges = (node, *((node, i) for i in range(1, len(y))))
            out.append(tuple(None if p is None else with_edge(p, edge) for p, edge in zip(y, edges)))
        else:
            out.append(with_edge(y, node))
    return tuple(out)


def with_edge(payload: Any, edge: Edge) -> TensorBase:
    """A tensor over `payload` whose gradient goes to `edge`; a leaf itself where the edge is one."""
    if isinstance(edge, TensorBase):
        return edge
    tensor = wrap(payload)
    if edge is not None:
        tensor.grad_fn, tensor.output_nr = edge if type(edge) is tuple else (edge, 0)
        tensor._requires_grad = True
    return tensor
