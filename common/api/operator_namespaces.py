"""`torch.ops`: operators by namespace and name, the engine's own under `aten`."""

from __future__ import annotations

from typing import Any, NoReturn

from common.core.errors import MissingAttributeError, NotDefinedError


class Operator:
    """A function of an engine, of which every overload is itself: it decides by its arguments.

    Parameters
    ----------
    name : in the namespace `aten`; PyTorch has some thousand.
    engine : that has the function, or refuses when it is called.
    """

    def __init__(self, name: str, engine: Any) -> None:
        self.__name__, self._engine = name, engine

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function.

        Raises
        ------
        NotDefinedError : the engine has none of that name.
        """
        for space in (self._engine, self._engine.nn.functional):
            if callable(found := getattr(space, self.__name__, None)):
                return found(*args, **kwargs)
        raise NotDefinedError(f"ops.aten.{self.__name__}: {self._engine.__name__} has no function of that name")

    def __repr__(self) -> str:
        return f"<operator aten.{self.__name__}>"

    def __getattr__(self, overload: str) -> Operator:
        if overload.startswith("_"):
            raise AttributeError(overload)
        return self


class Namespace:
    """The operators of a namespace.

    Parameters
    ----------
    name : such as "mine".
    engine : gives the functions of `aten`.
    """

    def __init__(self, name: str, engine: Any) -> None:
        self._name, self._engine = name, engine

    def __getattr__(self, name: str) -> Any:
        from common.control.custom_ops import OPERATORS

        op = OPERATORS.get(f"{self._name}::{name}")
        if op is not None and op.defined:
            return op
        if self._name == "aten" and not name.startswith("__"):
            made = self.__dict__[name] = Operator(name, self._engine)
            return made
        raise MissingAttributeError(f"'_OpNamespace' '{self._name}' object has no attribute '{name}': "
                                    "library.custom_op defines an operator", name=name, obj=None)  # fmt: skip


def load_library(path: Any) -> NoReturn:
    """Refused: a library of PyTorch's operators is linked with PyTorch.

    Raises
    ------
    OSError : always, as in PyTorch for a library that cannot be loaded.
    """
    raise OSError(f"Could not load this library: {path}: there is no C++ below; library.custom_op defines an operator")
