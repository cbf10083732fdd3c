"""Saved values of a node, read back: as payloads, and as tensors with their history."""

from __future__ import annotations

from typing import Any

import numpy as np

from common.core import mode
from common.core.op import COPY, REGISTRY
from common.core.python_numbers import weak
from common.core.source_lines import user_frame
from common.tensor.base import NUMBERS, TensorBase, wrap
from common.tensor.node import NODE_CLASSES, Edge, Node


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
    changed: Any = () if type(node.saved) is tuple else node.saved.packed_at
    for position, index in enumerate(op.saved_inputs):
        payload = saved[position]
        edge = node.edges[index]
        out.append(
            weak(payload) if isinstance(payload, NUMBERS)
            else unpacked(payload, edge) if position in changed
            else with_edge(payload, edge)
        )  # fmt: skip
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


def unpacked(payload: Any, edge: Edge, alone: bool = False) -> TensorBase:
    """`with_edge` for what an unpack hook returned: for a leaf, a tensor of the same history with these elements.

    Parameters
    ----------
    alone : whether it may be overwritten, and so must not be a leaf that merely has the same elements.
    """
    same = isinstance(edge, TensorBase) and (
        payload is edge.payload or (not alone and same_bits(payload, edge.payload))
    )
    if same or not isinstance(edge, TensorBase):
        return with_edge(payload, edge)
    return relayed(payload, edge)


def relayed(payload: Any, edge: Edge) -> TensorBase:
    """A tensor over a payload with a node of its own, which hands its gradient on to an edge."""
    tensor = wrap(payload)
    op = REGISTRY[COPY]
    node = Node(op, {}, (edge,), op.save((payload,), payload), None, *user_frame(2))
    tensor.grad_fn, tensor._requires_grad = node, True
    return tensor


def same_bits(a: Any, b: Any) -> bool:
    """Whether two arrays have the same elements, bit by bit."""
    if a is b:
        return True
    return type(a) is type(b) is np.ndarray and a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def with_edge(payload: Any, edge: Edge) -> TensorBase:
    """A tensor over `payload` whose gradient goes to `edge`; a leaf itself where the edge is one."""
    if type(edge) not in NODE_CLASSES and isinstance(edge, TensorBase):  # a node shows a class that has to be made
        return edge
    if mode.tracing and (trace := mode.current_trace()) is not None and trace.outside is not None:
        if not trace.holds(payload):  # a tensor from outside, with its history there
            with trace.outside:
                return with_edge(payload, edge)
    tensor = wrap(payload)
    if edge is not None:
        tensor.grad_fn, tensor.output_nr = edge if type(edge) is tuple else (edge, 0)
        tensor._requires_grad = True
    return tensor
