"""Public functions as methods: parameters have PyTorch's names, and a wrong argument is refused by its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from common.methods import engine_functions
from common.ops import functional
from common.tensor.base import TensorBase
from common.tensor.create import operand, operands

_extensions: list[Callable[[Any, Any], tuple[Any, dict[str, Any]]]] = []


def extend_with(extension: Callable[[Any, Any], tuple[Any, dict[str, Any]]]) -> None:
    """Make methods by ``extension(template, function)``: another template, and the names that its lines use."""
    _extensions.append(extension)


class Named:
    """A method that is made when it is first asked for: a binding of all of them would slow down the import.

    Parameters
    ----------
    home : the class that gets the method.
    """

    def __init__(self, name: str, home: type) -> None:
        self.name, self.home = name, home

    def __get__(self, instance: Any, owner: type) -> Any:
        names: dict[str, Any] = {"_operand": operand, "_operands": operands, "_Tensor": TensorBase}
        function = getattr(functional, self.name)
        template: Any = _body
        for extension in _extensions:
            template, more = extension(template, function)
            names |= more
        method = engine_functions.bind(self.name, function, template, __file__, **names)
        setattr(self.home, self.name, method)
        return method if instance is None else method.__get__(instance, owner)


def _body(tensors: list[str], sequences: list[str], call: str) -> list[str]:
    """Arrays and lists become tensors; a number stays one, also where all operands are numbers."""
    lines = [f"if not isinstance({x}, _Tensor): {x} = _operand({x}, None)" for x in tensors[1:]]
    return [*lines, *(f"{x} = _operands({x})" for x in sequences), f"return {call}"]
