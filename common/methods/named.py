"""Public functions as methods: parameters have PyTorch's names, and a wrong argument is refused by its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from common.methods import engine_functions
from common.ops import functional
from common.tensor.base import TensorBase
from common.tensor.create import operand, operands

_extensions: list[Callable[[Any, Any], tuple[Any, dict[str, Any]]]] = []
extended: list[Callable[[], object]] = []
"""Called when there is a new extension."""


def extend_with(extension: Callable[[Any, Any], tuple[Any, dict[str, Any]]]) -> None:
    """Make methods by ``extension(template, function)``: another template, and the names that its lines use."""
    _extensions.append(extension)
    for call in extended:
        call()


def bound(name: str) -> Callable[..., Any]:
    """A public function as its method is, see `Named`."""
    names: dict[str, Any] = {"_operand": operand, "_operands": operands, "_Tensor": TensorBase}
    function = getattr(functional, name)
    template: Any = _body
    for extension in _extensions:
        template, more = extension(template, function)
        names |= more
    return engine_functions.bind(name, function, template, __file__, **names)


class Named:
    """A method that is made when it is first asked for: a binding of all of them would slow down the import.

    Parameters
    ----------
    home : the class that gets the method.
    """

    def __init__(self, name: str, home: type) -> None:
        self.name, self.home = name, home

    def __get__(self, instance: Any, owner: type) -> Any:
        method = bound(self.name)
        setattr(self.home, self.name, method)
        return method if instance is None else method.__get__(instance, owner)


def _body(tensors: list[str], sequences: list[str], call: str) -> list[str]:
    """Arrays and lists become tensors; a number stays one, also where all operands are numbers."""
    lines = [f"if not isinstance({x}, _Tensor): {x} = _operand({x}, None)" for x in tensors[1:]]
    return [*lines, *(f"{x} = _operands({x})" for x in sequences), f"return {call}"]
