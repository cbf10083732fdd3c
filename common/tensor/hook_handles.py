"""The hooks of one node or leaf, and the handles that take them out again."""

from __future__ import annotations

import itertools
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from common.core import mode
from common.core.int_arguments import integer, members

#: Whether anything has ever been given hooks: backward passes look for them only then, or while something watches.
hooks_seen = False

Hook = Callable[..., Any]


class NotesChanges:
    """A base of dictionaries that tell compiled programs of their changes; it is named before the dictionary."""


def _telling(name: str) -> Callable[..., Any]:
    def change(self: Any, *given: Any, **named: Any) -> Any:
        mode.note_change()
        return getattr(super(NotesChanges, self), name)(*given, **named)

    return change


for _name in ("__setitem__", "__delitem__", "__ior__", "clear", "pop", "popitem", "setdefault", "update"):
    setattr(NotesChanges, _name, _telling(_name))


class HookTable(NotesChanges, OrderedDict[int, Hook]):
    """The hooks of a module or leaf, by the ids of their handles."""

    def __repr__(self) -> str:
        return repr(OrderedDict(self))


class RemovableHandle:
    """The handle of a registered hook; also a context manager that removes the hook at the end.

    Parameters
    ----------
    hooks : where the hook stands.
    hook : the function.
    """

    _ids = itertools.count()

    def __init__(self, hooks: dict[int, Hook], hook: Hook) -> None:
        self._hooks = hooks
        self.id = next(self._ids)
        hooks[self.id] = hook

    @classmethod
    def go_beyond(cls, used: Sequence[int]) -> None:
        """Give new hooks other ids than those that came with a pickle of another process."""
        taken = members(used, "go_beyond", "used")
        cls._ids = itertools.count(max([next(cls._ids), *(integer(i, "go_beyond", "used") + 1 for i in taken)]))

    def hooks_dict_ref(self) -> dict[int, Hook]:
        """The table in which the hook stands."""
        return self._hooks

    def remove(self) -> None:
        """Take the hook out; again does nothing."""
        self._hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


class Hooks:
    """The hooks of one node or leaf.

    Attributes
    ----------
    tensor : per output, functions of the total gradient.
    retained : per output, the tensor whose `.grad` keeps the total.
    before, after : of the node itself.
    accumulated : post-accumulate hooks of a leaf.
    """

    __slots__ = ("accumulated", "after", "before", "retained", "tensor")

    def __init__(self) -> None:
        self.tensor: dict[int, dict[int, Hook]] = {}
        self.retained: dict[int, weakref.ref[Any]] = {}
        self.before: dict[int, Hook] = {}
        self.after: dict[int, Hook] = {}
        self.accumulated: dict[int, Hook] = HookTable()

    def ids(self) -> tuple[int, ...]:
        """The ids of all hooks of a leaf."""
        return (*itertools.chain(*self.tensor.values(), self.accumulated, self.before, self.after),)


def hooks_of(owner: Any) -> Hooks:
    """The hooks of a node or leaf, made at first use; from now on backward passes look for hooks."""
    global hooks_seen
    found = getattr(owner, "_hooks", None)
    if found is None:
        found = owner._hooks = Hooks()
        hooks_seen = True
    return found
