"""Members that a class gets from a higher room: the one way in which modules change a class of another one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def give(cls: type, members: Mapping[str, Any]) -> None:
    """Give a class methods and properties, in the place of those that it has under these names.

    Parameters
    ----------
    cls : class of a lower room, whose docstring need not know of them.
    members : by name.
    """
    for name, member in members.items():
        setattr(cls, name, member)
