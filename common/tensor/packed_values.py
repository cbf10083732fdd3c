"""Saved values that pack hooks have turned into something else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from common.core import mode
from common.core.errors import ArgumentError, GradientError
from common.tensor import write_log
from common.tensor.base import TensorBase, wrap
from common.tensor.node import Node
from common.tensor.write_log import apart, positions_read

#: A function that packs, and one that unpacks.
Hooks = tuple[Callable[[Any], Any], Callable[[Any], Any]]


class PackedValue(NamedTuple):
    """A pack hook's result for one array, and the hook that unpacks it."""

    packed: Any
    unpack: Callable[[Any], Any]

    def open(self) -> np.ndarray:
        """The array.

        Raises
        ------
        ArgumentError : the unpack hook returned no tensor.
        """
        x = mode.by_itself(self.unpack, self.packed)
        if not isinstance(x, TensorBase):
            raise ArgumentError(
                f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(x).__name__}"
            )
        array: np.ndarray = x.payload
        return array

    def keep_apart(self, memory: np.ndarray) -> PackedValue:
        """The same, copied where the hook returned a tensor or array that shares memory with the one given."""
        x = self.packed
        if isinstance(x, TensorBase):
            return self if apart(x.payload, memory) is x.payload else self._replace(packed=wrap(np.array(x.payload)))
        return self._replace(packed=apart(x, memory))


def pack(array: np.ndarray, hooks: Hooks) -> PackedValue:
    """Send an array through a pack hook.

    Raises
    ------
    GradientError : the hook has overwritten it.
    """
    before = write_log.last_write
    with mode.no_grad():
        packed = hooks[0](wrap(array))
    if write_log.last_write != before and write_log.written_since(array, before):
        raise GradientError(
            "A saved tensor pack hook is modifying its input in place, which is the memory of the program's own "
            "tensor. Return a changed copy instead."
        )
    return PackedValue(packed, hooks[1])


def _packed(x: Any, hooks: Hooks) -> Any:
    """A saved value with its arrays packed; several results are a tuple. No closure: it would hold itself."""
    if isinstance(x, np.ndarray):
        return pack(x, hooks)
    if isinstance(x, tuple) and any(isinstance(part, np.ndarray) for part in x):
        return tuple(_packed(part, hooks) for part in x)
    return x


class Packed:
    """Saved values of a node after pack hooks; `open` gives them back.

    Parameters
    ----------
    values : what the node saves.
    hooks : what packs and unpacks.
    chosen : positions of the values to pack. Numbers, shapes and what backward does not read stay as they are.
    """

    __slots__ = ("_values",)

    def __init__(self, values: tuple[Any, ...], hooks: Hooks, chosen: Sequence[int]) -> None:
        self._values = [_packed(x, hooks) if i in chosen else x for i, x in enumerate(values)]

    def add(self, hooks: Hooks, position: int) -> None:
        """Send one more value through hooks of its own."""
        self._values[position] = _packed(self._values[position], hooks)

    def keep_apart(self, memory: np.ndarray) -> None:
        """Copy what the hooks return as it is, before memory that it shares is overwritten."""
        self._values = [x.keep_apart(memory) if type(x) is PackedValue else apart(x, memory) for x in self._values]

    @property
    def unpacked(self) -> tuple[Any, ...]:
        """Saved values that no hook packs: numbers and shapes."""
        return tuple(x for x in self._values if not _is_packed(x))

    @property
    def packed_at(self) -> frozenset[int]:
        """Positions of what hooks have packed."""
        return frozenset(i for i, x in enumerate(self._values) if _is_packed(x))

    def open(self) -> tuple[Any, ...]:
        """The saved values as arrays."""
        return tuple(_opened(x) for x in self._values)


def _is_packed(x: Any) -> bool:
    return type(x) is PackedValue or (type(x) is tuple and any(type(part) is PackedValue for part in x))


def _opened(x: Any) -> Any:
    if type(x) is PackedValue:
        return x.open()
    return tuple(map(_opened, x)) if _is_packed(x) else x


def pack_saved(node: Node, hooks: Hooks, only: int | None = None) -> None:
    """Send what a node saves and its rules will read, or one value of that, through a pair of hooks."""
    if type(node.saved) is Packed and only is not None:
        node.saved.add(hooks, only)
        return
    read = positions_read(node.op, node.op.rules, tuple([edge is not None for edge in node.edges]))
    node.saved = Packed(node.saved, hooks, [i for i in read if only in (None, i)])
    inner = node.backward
    node.backward = lambda saved, attrs, g, needs: inner(saved.open(), attrs, g, needs)
