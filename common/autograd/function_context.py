"""The context of a user-defined function: `forward` hands values to `backward` through it."""

from __future__ import annotations

from typing import Any, NamedTuple

from common.core.errors import ArgumentError, GraphFreedError, MissingAttributeError
from common.core.source_lines import warn_user
from common.tensor.base import TensorBase
from common.tensor.node import Edge, Node
from common.tensor.packed_values import PackedValue
from common.tensor.read_saved import unpacked, with_edge

#: Attributes that a context has of its node.
_OF_NODE = frozenset(("metadata", "name", "next_functions", "register_hook", "register_prehook", "_sequence_nr"))


class FunctionCtx:
    """The context that `forward` hands to `backward`; takes any attributes, which `grad_fn` of the results shows too.

    Attributes
    ----------
    needs_input_grad : per argument of `apply`, whether its gradient is asked for.
    """

    def __init__(self, needs: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs
        self._to_save: tuple[Any, ...] = ()
        self._dirty: tuple[Any, ...] = ()
        self._constant: tuple[Any, ...] = ()
        self._materialize = True
        self._materialize_non_diff_grads = True
        self._for_forward: tuple[Any, ...] | None = None
        self._node: Any = None
        self._left: Any = None

    def __getattr__(self, name: str) -> Any:
        node = self._node() if "_node" in self.__dict__ and self._node is not None else None
        if node is not None and name in _OF_NODE:
            return getattr(node, name)
        kind = type(self).__name__ if node is None else node.name()
        raise MissingAttributeError(f"{kind!r} object has no attribute {name!r}")

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors, or None, for `backward`, which finds them in `saved_tensors`.

        Overwriting one of them before `backward` is noticed; inputs and results keep their history.

        Raises
        ------
        ArgumentError : something that is no tensor; keep that as an attribute.
        """
        _require_tensors(tensors, "save_for_backward can only save variables, but got an object")
        self._to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep tensors, or None, for `jvp`, which finds them in `saved_tensors`.

        Raises
        ------
        ArgumentError : something that is no tensor; keep that as an attribute.
        """
        _require_tensors(tensors, "save_for_forward can only save variables, but argument is")
        self._for_forward = tensors

    def mark_dirty(self, *tensors: Any) -> None:
        """Say which arguments `forward` has overwritten; they must be among its results."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Say which results have no gradient."""
        self._constant = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` gets zeros (the default) or None for results that no gradient reached."""
        self._materialize = value

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors that `save_for_backward` kept.

        Raises
        ------
        GraphFreedError : a backward pass without `retain_graph` has freed it.
        """
        if self._for_forward is not None:
            return self._for_forward
        node = self._node() if self._node is not None else None
        if node is None and self._node is None:
            return self._to_save
        saved = self._left if node is None else node.saved
        if saved is None:
            raise GraphFreedError(
                "Trying to access saved tensors after they have already been freed. Specify retain_graph=True if you "
                "need to backward through the graph a second time."
            )
        return tuple(None if x is None else x.restore(node) for x in saved)

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """`saved_tensors`, under its name of long ago."""
        warn_user("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning)
        return self.saved_tensors


class SavedForBackward(NamedTuple):
    """A saved tensor without its history, which would be a cycle if it is a result.

    Attributes
    ----------
    edge : where its gradient goes.
    output : which result it is, None for an argument or anything else.
    itself : the tensor, if it has no history.
    """

    payload: Any
    edge: Edge
    output: int | None
    itself: Any = None

    def restore(self, node: Node | None) -> TensorBase:
        """The tensor with its history; a result of a node that is gone has none."""
        if self.itself is not None and self.itself.payload is self.payload:
            return self.itself
        return with_edge(self.payload, _edge_of(self, node))


class PackedForBackward(NamedTuple):
    """The object that a pack hook made of a saved tensor; `edge` and `output` as for `SavedForBackward`."""

    slot: PackedValue
    edge: Edge
    output: int | None
    payload: None = None  # no array that a write could reach

    def restore(self, node: Node | None) -> TensorBase:
        """The unpack hook's result, with the history of the saved tensor."""
        return unpacked(self.slot.open(), _edge_of(self, node), alone=True)


def _edge_of(saved: SavedForBackward | PackedForBackward, node: Node | None) -> Edge:
    """Where the gradient of a saved tensor goes."""
    if saved.output is None or node is None:
        return saved.edge
    return (node, saved.output) if saved.output else node


def _require_tensors(given: tuple[Any, ...], told: str) -> None:
    for x in given:
        if x is not None and not isinstance(x, TensorBase):
            raise ArgumentError(f"{told} of type {type(x).__name__}")
