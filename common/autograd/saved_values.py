"""Values that a node has saved for backward, by name: PyTorch's ``_saved_self`` and its like.

They are properties of `Node`, one per name that any op saves. A `__getattr__` would do with less, but a class that has
one loses the interpreter's fast way to its slots, and the backward pass reads them all the time.
"""

from __future__ import annotations

from typing import Any

from common.autograd.backward_pass import freed
from common.autograd.function_context import PackedForBackward
from common.core.aliases import RENAMED_IN
from common.core.errors import ArgumentError, GradientError, MissingAttributeError
from common.core.members import give
from common.core.op import REGISTRY, Op, rules_changed
from common.tensor import write_log
from common.tensor.base import TensorBase
from common.tensor.node import FunctionNode, Node
from common.tensor.packed_values import Packed, pack, pack_saved
from common.tensor.read_saved import saved_tensors
from common.tensor.write_log import positions_read

#: PyTorch's names of a first and second operand and of the result.
_PYTORCH = {"x": "self", "a": "self", "b": "other", "y": "result", "rest": "result", "first": "result",
            "x_shape": "self_sym_sizes"}  # fmt: skip
#: PyTorch's names of an op's other operands, where the parameter has another name too.
_RENAMED = {"clamp": {"low": "min", "high": "max"}}


def saved_names(op: Op) -> tuple[str, ...]:
    """PyTorch's names of the values that a node of an op saves, in the order in which it holds them."""
    public = {
        **_PYTORCH,
        **_RENAMED.get(op.name, {}),
        **{k: v for k, v in RENAMED_IN.get(op.name, {}).items() if k != op.inputs[0]},
    }
    return tuple(public.get(name, name) for name in getattr(op, "saves", ()))


class SavedTensor:
    """The place of one saved value: PyTorch's ``_raw_saved_self`` and its like.

    Parameters
    ----------
    node : that saves it.
    position : among its saved values.

    Raises
    ------
    GradientError : it is made without a node: only the tape makes it.
    """

    def __init__(self, node: Node | None = None, position: int = 0) -> None:
        if node is None:
            raise GradientError("Trying to create a SavedTensor object from Python is forbidden.")
        self._node, self._position = node, position

    def register_hooks(self, pack_hook: Any = None, unpack_hook: Any = None) -> None:
        """Send the value through ``pack_hook(tensor)`` now, and ``unpack_hook(packed)`` when backward reads it.

        Raises
        ------
        GraphFreedError : it is gone.
        GradientError : it has hooks already, or is None.
        ArgumentError : there are not two functions.
        """
        if not (callable(pack_hook) and callable(unpack_hook)):
            raise ArgumentError(
                "register_hooks(): incompatible function arguments: it takes two functions, pack_hook and unpack_hook, "
                f"but got {type(pack_hook).__name__} and {type(unpack_hook).__name__}"
            )
        node, position = self._node, self._position
        saved = node.saved
        if saved is None:
            raise freed(node)
        function = node.op.kind == "function"
        value: Any = saved[position] if function else None
        if function and value is None:
            raise GradientError(
                f"Calling register_hooks on a saved tensor with value None is forbidden: value {position} that "
                f"{node.name()} saves is None."
            )
        if type(value) is PackedForBackward or (type(saved) is Packed and position in saved.packed_at):
            raise GradientError(
                "Calling register_hooks on a saved tensor whose hooks have already been set: another pair would never "
                f"see the value that {node.name()} saves. Hint: only one pair of hooks is allowed at a time."
            )
        if function:
            packed = PackedForBackward(pack(value.payload, (pack_hook, unpack_hook)), value.edge, value.output)
            node.saved = (*saved[:position], packed, *saved[position + 1 :])
        else:
            pack_saved(node, (pack_hook, unpack_hook), position)


def _position(node: Node, name: str) -> int:
    """Where a node saves the value of a name."""
    names = saved_names(node.op)
    if name not in names:
        known = [f"_saved_{n}" for n in (*names, *getattr(node.op, "attrs", ()))]
        raise MissingAttributeError(f"{node.name()} has no attribute '_saved_{name}'; it saves {known}")
    if node.saved is None:
        raise freed(node)
    return names.index(name)


def _read(node: Node) -> tuple[int, ...]:
    """Positions of the saved values that backward reads: an operand without gradient needs no rule."""
    return positions_read(node.op, node.op.rules, tuple([edge is not None for edge in node.edges]))


def _saved(name: str) -> property:
    """A property for the saved value of a name: a tensor with its history, a number, a shape, or an attribute."""

    def get(node: Node) -> Any:
        if name in getattr(node.op, "attrs", ()) and name not in saved_names(node.op) and node.attrs is not None:
            return node.attrs[name]
        position = _position(node, name)
        value = saved_tensors(node)[position]
        if isinstance(value, TensorBase):
            if position not in _read(node):
                return None
            if node.number < write_log.last_write and type(node.saved) is tuple:
                write_log.check([node], lambda node: (pair for pair in write_log.needed(node) if pair[0] == position))
            return value
        return value if isinstance(value, (tuple, bool, int, float)) else tuple(value)

    return property(
        get, doc=f"The saved value {name!r}, until a backward pass frees it; None if that does not read it."
    )


def _raw(name: str) -> property:
    return property(
        lambda node: SavedTensor(node, _position(node, name)), doc=f"The place of the saved value {name!r}, for hooks."
    )


def _of_function(node: Node) -> tuple[Any, ...]:
    """The values that a `Function` saved for its `backward`.

    Raises
    ------
    AttributeError : the node is no Function's.
    """
    if node.op.kind != "function":
        raise MissingAttributeError(f"{node.name()} has no attribute 'saved_tensors'; only nodes of a Function have")
    found: tuple[Any, ...] = node.attrs.saved_tensors
    return found


def _raw_of_function(node: Node) -> tuple[SavedTensor, ...]:
    """The places of what a `Function` saved, for hooks.

    Raises
    ------
    AttributeError : the node is no Function's.
    GraphFreedError : they are gone.
    """
    return tuple(SavedTensor(node, position) for position, _ in enumerate(_of_function(node)))


def _names(node: Node) -> list[str]:
    """The attributes of a node, without the names of values that nodes of other ops save."""
    own = {*saved_names(node.op), *getattr(node.op, "attrs", ())}
    parts = ((name, *name.partition("saved_")) for name in object.__dir__(node))
    has_context = isinstance(node, FunctionNode)
    unset = [name for name in ("_hooks", "_metadata") if not hasattr(node, name)]
    unset += [] if has_context else ["saved_tensors", "_raw_saved_tensors"]
    found = [n for n, before, _, value in parts if n not in unset and (before not in ("_", "_raw_") or value in own)]
    return [*found, *vars(node.attrs)] if has_context else found


give(
    Node,
    {"saved_tensors": property(_of_function), "_raw_saved_tensors": property(_raw_of_function), "__dir__": _names},
)


def _show_values(op: Op) -> None:
    """Give nodes the attributes of an op's saved values."""
    names = saved_names(op)
    give(Node, {f"_raw_saved_{name}": _raw(name) for name in names})
    give(Node, {f"_saved_{name}": _saved(name) for name in (*names, *op.attrs)})


for _op in REGISTRY.loaded():
    _show_values(_op)
rules_changed.append(_show_values)
