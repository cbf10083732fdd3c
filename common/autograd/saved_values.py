"""What a node has saved for backward, by name: PyTorch's ``_saved_self`` and its like.

They are properties of `Node`, one per name that any op saves. A `__getattr__` would do with less, but a class that has
one loses the interpreter's fast way to its slots, and the backward pass reads them all the time.
"""

from __future__ import annotations

from typing import Any

from common.autograd.tape import Node, freed
from common.op import REGISTRY, Op
from common.surface import RENAMED_IN
from common.tensor import TensorBase, saved_tensors

#: PyTorch's names of a first and second operand and of the result.
_PYTORCH = {"x": "self", "a": "self", "b": "other", "y": "result"}


def saved_names(op: Op) -> tuple[str, ...]:
    """PyTorch's names of the values that a node of an op saves, in the order in which it holds them."""
    public = {**_PYTORCH, **{k: v for k, v in RENAMED_IN.get(op.name, {}).items() if k != op.inputs[0]}}
    return tuple(public.get(name, name) for name in getattr(op, "saves", ()))


def _saved(name: str) -> property:
    """A property for the saved value of a name: a tensor with its history, a number, or a shape."""

    def get(node: Node) -> Any:
        names = saved_names(node.op)
        if name not in names:
            known = [f"_saved_{n}" for n in names]
            raise AttributeError(f"{node.name()} has no attribute '_saved_{name}'; it saves {known}")
        if node.saved is None:
            raise freed(node)
        value = saved_tensors(node)[names.index(name)]
        return value if isinstance(value, (TensorBase, tuple, bool, int, float)) else tuple(value)

    return property(get, doc=f"The saved value {name!r}, until a backward pass frees it.")


for _name in {name for op in REGISTRY.values() for name in saved_names(op)}:
    setattr(Node, f"_saved_{_name}", _saved(_name))
