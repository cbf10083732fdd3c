"""Lists and dicts of an optimiser that tell it when a program changes them: what it has compiled relies on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any
from weakref import ref


def _telling(*names: str) -> Callable[[type], type]:
    """Let these methods, which the class inherits, tell the owner afterwards."""

    def of(kind: type) -> type:
        for name in names:
            setattr(kind, name, _told(getattr(kind, name)))
        return kind

    return of


def _told(method: Any) -> Any:
    @wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        finally:  # also half of a change is one
            if (owner := self.owner and self.owner()) is not None:
                owner.note_members()

    return call


class Owned:
    """A container of an optimiser.

    Attributes
    ----------
    owner : the optimiser, weakly; None until it has one.
    """

    owner: ref[Any] | None = None


@_telling(
    "__setitem__", "__delitem__", "__iadd__", "__imul__", "append", "clear", "extend", "insert", "pop", "remove",
    "reverse", "sort",
)  # fmt: skip
class MemberList(Owned, list[Any]):
    """The parameters of a group."""

    def __reduce__(self) -> Any:
        return MemberList, ([*self],)  # a copy belongs to the copy of its optimiser


_OF_DICTS = "__setitem__", "__delitem__", "__ior__", "clear", "pop", "popitem", "setdefault", "update"


@_telling(*_OF_DICTS)
class MemberState(Owned, dict[str, Any]):
    """The state of a parameter, by name."""

    def __reduce__(self) -> Any:
        return MemberState, ({**self},)


@_telling(*_OF_DICTS)
class States(Owned, dict[Any, Any]):
    """The state of all parameters; one that is asked for and not there is empty."""

    def __init__(self, states: Mapping[Any, Any] = {}, owner: ref[Any] | None = None) -> None:
        super().__init__(states)
        self.belong(owner)

    def __missing__(self, p: Any) -> MemberState:
        state = MemberState()
        state.owner = self.owner
        dict.__setitem__(self, p, state)
        return state

    def __reduce__(self) -> Any:
        return States, (dict(self),)

    def belong(self, owner: ref[Any] | None) -> None:
        """Give this and each parameter's state an owner, also where a program has put a dict of its own."""
        self.owner = owner
        for p, state in self.items():
            if type(state) is dict:
                dict.__setitem__(self, p, state := MemberState(state))
            if isinstance(state, Owned):
                state.owner = owner


__all__ = ["MemberList", "MemberState", "States"]
