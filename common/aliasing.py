"""Which eager tensors share memory as views of one another: asked before an in-place write with history.

Such a write gives one tensor a new place on the tape. The tensors that share its memory would show the new elements
with the old history, and their gradients would be wrong. PyTorch rewrites their histories; this engine refuses, and
says how to write the program instead.
"""

from __future__ import annotations

from typing import Any
from weakref import ref

import numpy as np

from common.errors import GradientError


class Family:
    """Tensors over one memory, held weakly; dead entries are dropped as the list doubles."""

    __slots__ = ("limit", "members")

    def __init__(self, first: Any) -> None:
        self.members = [ref(first)]
        self.limit = 16

    def add(self, tensor: Any) -> None:
        """Take up a view."""
        self.members.append(ref(tensor))
        if len(self.members) > self.limit:
            self.members = [r for r in self.members if r() is not None]
            self.limit = 2 * len(self.members) + 16


def note_view(x: Any, view: Any) -> None:
    """Note that `view` shows the memory of `x`."""
    family = getattr(x, "_family", None)
    if family is None:
        family = x._family = Family(x)
    view._family = family
    family.add(view)


def refuse_shared(x: Any, name: str, written: np.ndarray) -> None:
    """Refuse an in-place write with history if another live tensor shows the memory that is written.

    Raises
    ------
    GradientError : one does.
    """
    family = getattr(x, "_family", None)
    for member in family.members if family is not None else ():
        other = member()
        if other is not None and other is not x and np.may_share_memory(other.data, written):
            raise GradientError(
                f"{name}_() with gradient on a tensor that is a view of, or is viewed by, another tensor of shape "
                f"{tuple(other.shape)}, whose history would be wrong afterwards. Use the functional form "
                f"(y = {name}(x, ...)), a .clone(), or no_grad() if no gradient is wanted."
            )
