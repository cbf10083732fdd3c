"""Nodes as PyTorch shows them: their names, and which of their operands are their neighbours.

Names of overloads, and which operands were numbers, follow from what a node holds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from common.core.dispatch import Attrs


class NamedNode(Protocol):
    """The fields of a node on which its name depends."""

    op: Any
    attrs: Any
    edges: tuple[Any, ...]
    fit: Any


def node_name(node: NamedNode) -> str:
    """PyTorch's name of a node, e.g. ``MulBackward0``; ``SumBackward1`` is a sum over some of the dimensions."""
    given = node.attrs.node_name if type(node.attrs) is Attrs else None
    if given is not None:
        return given
    name: str = node.op.node_name
    overload = _OVERLOADS.get(node.op.name)
    return name if overload is None else f"{name[:-1]}{int(overload(node))}"


def _over_dimensions(node: NamedNode) -> bool:
    """Whether a reduction was told its dimensions; over all of a tensor's it looks as if not."""
    forms = node.fit[0] if node.fit else None
    return bool(node.attrs["keepdim"]) or (forms is not None and len(node.attrs["dim"]) < len(forms[0]))


def _number(node: NamedNode, position: int) -> bool:
    """Whether an operand is a Python number."""
    return node.fit is not None and isinstance(node.fit[position], type)


def shown_edges(node: NamedNode) -> list[Any]:
    """The edges of the operands at `shown_positions`."""
    return [node.edges[i] for i in shown_positions(node)]


def shown_positions(node: NamedNode) -> list[int]:
    """Operands that have a derivative: not indices and conditions, nor most numbers."""
    rules, forms = getattr(node.op, "rules", None), node.fit
    if rules is None:
        return list(range(len(node.edges)))
    numbers = forms is None or node.op.name in _NUMBERS_COUNT
    return [
        i
        for i, edge in enumerate(node.edges)
        if edge is not None or (rules[i] is not None and (numbers or not isinstance(forms[i], type)))
    ]


#: Ops whose numbers are tensors in PyTorch.
_NUMBERS_COUNT = frozenset(("add", "sub", "mul", "div", "where"))

#: Per op the number of PyTorch's overload, by which its nodes' names end.
_OVERLOADS: dict[str, Callable[[NamedNode], int]] = {
    "sum": _over_dimensions, "mean": _over_dimensions, "prod": _over_dimensions,
    "pow": lambda node: not _number(node, 1), "fmod": lambda node: not _number(node, 1),
    "remainder": lambda node: not _number(node, 1), "lerp": lambda node: not _number(node, 2),
    "clamp_min": lambda node: not _number(node, 1), "clamp_max": lambda node: not _number(node, 1),
    "clamp": lambda node: _number(node, 1), "copysign": lambda node: _number(node, 1),
    "xlogy": lambda node: 2 if _number(node, 1) else _number(node, 0),
    "round_decimals": lambda node: 1, "round_tens": lambda node: 1,
}  # fmt: skip
