"""Where a path of the tape ends: the object that stands for adding to a leaf's `.grad`."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from common.tensor.hook_handles import RemovableHandle, hooks_of


class AccumulateGrad:
    """The end of a path: the leaf into whose `.grad` the gradient goes.

    Attributes
    ----------
    metadata : a dictionary for the user's own purposes.
    """

    __slots__ = ("__weakref__", "metadata", "variable")
    next_functions: tuple[()] = ()

    def __init__(self, variable: Any) -> None:
        self.variable = variable
        self.metadata: dict[str, Any] = {}

    def name(self) -> str:
        """PyTorch's name."""
        return "AccumulateGrad"

    def register_hook(self, hook: Callable[..., Any]) -> Any:
        """Call ``hook((), grad_outputs)`` after a pass has added to the leaf's `.grad`."""
        return register(self.variable, "after", hook)

    def register_prehook(self, hook: Callable[..., Any]) -> Any:
        """Call ``hook(grad_outputs)`` before a pass adds to the leaf's `.grad`; it returns None or what to add."""
        return register(self.variable, "before", hook)

    def __repr__(self) -> str:
        return f"<AccumulateGrad object at {id(self):#x}>"


def accumulate_grad(leaf: Any) -> AccumulateGrad:
    """The AccumulateGrad of a leaf: one object as long as somebody holds it; the leaf does not, to avoid a cycle."""
    sink: AccumulateGrad | None = getattr(leaf, "_sink", _nothing)()
    if sink is None:
        sink = AccumulateGrad(leaf)
        leaf._sink = weakref.ref(sink)
    return sink


def _nothing() -> None:
    """A reference to nothing."""


def register(owner: Any, kind: str, hook: Callable[..., Any]) -> Any:
    """Hang a hook of a kind into a node, or into a leaf."""
    return RemovableHandle(getattr(hooks_of(owner), kind), hook)
