"""An engine's functions as attributes of users' module classes: ``activation = torch.relu``."""

from __future__ import annotations

from types import FunctionType
from typing import Any

_OURS = ("common", "dynamic", "static")


def _is_function_of_ours(x: Any) -> bool:
    return type(x) is FunctionType and (x.__module__ or "").partition(".")[0] in _OURS and "." not in x.__qualname__


class HoldsFunctions:
    """A base of classes in which PyTorch's functions may stand: a call through an object does not get the object.

    Most of PyTorch's functions are builtins, which Python does not bind to objects; these are Python functions.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__module__.partition(".")[0] not in _OURS:
            for name, x in list(vars(cls).items()):
                if _is_function_of_ours(x):
                    setattr(cls, name, staticmethod(x))
