"""What a node has saved for backward, by name: PyTorch's ``_saved_self`` and its like."""

from __future__ import annotations

from typing import Any

from common.autograd.tape import Node, freed
from common.tensor import TensorBase, saved_tensors

#: PyTorch's names of a first and second operand and of the result.
_PYTORCH = {"x": "self", "a": "self", "b": "other", "y": "result"}


def saved_names(node: Node) -> tuple[str, ...]:
    """PyTorch's names of the values that a node of an op saves, in the order in which it holds them."""
    from common.surface import RENAMED_IN

    public = {**_PYTORCH, **{k: v for k, v in RENAMED_IN.get(node.op.name, {}).items() if k != node.op.inputs[0]}}
    return tuple(public.get(name, name) for name in getattr(node.op, "saves", ()))


def saved_attribute(node: Node, name: str) -> Any:
    """A saved value: a tensor with its history, a number, or a shape.

    Raises
    ------
    AttributeError : the node saves nothing of that name.
    GraphFreedError : a backward pass has freed it.
    """
    names = saved_names(node)
    wanted = name.removeprefix("_saved_")
    if wanted not in names:
        known = [f"_saved_{n}" for n in names]
        raise AttributeError(f"{node.name()} has no attribute {name!r}; it saves {known}")
    if node.saved is None:
        raise freed(node)
    value = saved_tensors(node)[names.index(wanted)]
    return value if isinstance(value, (TensorBase, tuple, bool, int, float)) else tuple(value)
