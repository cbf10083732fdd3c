"""Methods whose parameters have PyTorch's names, where those of the function behind differ."""

from __future__ import annotations

from typing import Any

from common.op import Op


class Named:
    """A method that is made when it is first asked for: a binding of all of them would slow down the import.

    Parameters
    ----------
    home : the class that gets the method.
    """

    def __init__(self, name: str, function: Any, home: type) -> None:
        self.name, self.function, self.home = name, function, home

    def __get__(self, instance: Any, owner: type) -> Any:
        from common import surface
        from common.operators import as_operand

        method = surface.bind(self.name, self.function, _body, __file__, as_operand=as_operand)
        setattr(self.home, self.name, method)
        return method if instance is None else method.__get__(instance, owner)


def _body(tensors: list[str], sequences: list[str], call: str) -> list[str]:
    return [*(f"{x} = as_operand({x})" for x in tensors[1:]), f"return {call}"]


#: Parameters behind the first one whose names PyTorch has otherwise; see `common.surface.RENAMED_IN`.
_OTHERS = frozenset(["b", "src", "index"])


def method(name: str, function: Any, home: type) -> Any:
    """A public function as a method of `home`: itself, if its parameters have their names already."""
    if isinstance(function, Op):
        return Named(name, function, home)
    code = function.__code__
    behind = code.co_varnames[1 : code.co_argcount]
    return function if _OTHERS.isdisjoint(behind) else Named(name, function, home)
