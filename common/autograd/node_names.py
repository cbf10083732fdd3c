"""Names of nodes as PyTorch writes them: those of overloads follow from what a node holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from common.autograd.tape import Node


def node_name(node: Node) -> str:
    """PyTorch's name of a node, e.g. ``MulBackward0``; ``SumBackward1`` is a sum over some of the dimensions."""
    name: str = node.op.node_name
    overload = _OVERLOADS.get(node.op.name)
    return name if overload is None or not overload(node) else f"{name[:-1]}1"


def _over_dimensions(node: Node) -> bool:
    """Whether a reduction was told its dimensions; over all of a tensor's it looks as if not."""
    forms = node.fit[0] if node.fit else None
    return bool(node.attrs["keepdim"]) or (forms is not None and len(node.attrs["dim"]) < len(forms[0]))


def _second_is_tensor(node: Node) -> bool:
    return not _second_is_number(node)


def _second_is_number(node: Node) -> bool:
    """Whether the second operand, an exponent or a bound, is a Python number."""
    if node.saved is None:
        return isinstance(node.fit[1], type) if node.fit else False
    saved: Any = node.saved
    return type(saved) is tuple and isinstance(saved[1], (bool, int, float))


_OVERLOADS: dict[str, Callable[[Node], bool]] = {
    "sum": _over_dimensions, "mean": _over_dimensions, "prod": _over_dimensions, "pow": _second_is_tensor,
    "clamp_min": _second_is_number, "clamp_max": _second_is_number,
    "clamp": _second_is_number,
}  # fmt: skip
