"""Parameters of a distribution that follow from others."""

from __future__ import annotations

from typing import Any

from common.core import mode as modes


class Implied:
    """A property that an attribute of the object stands in for, if it has one: of two parameters one is given."""

    def __init__(self, compute: Any) -> None:
        self.compute, self.__doc__ = compute, compute.__doc__

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        if owner is None:
            return self
        with modes.enable_grad():
            return self.compute(owner)
