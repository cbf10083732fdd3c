"""Modules made of modules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from common.errors import ArgumentError
from common.nn.module import Module


class Sequential(Module):
    """Modules one after the other.

    Parameters
    ----------
    modules : the modules in order, or one dict of them by name.

    Raises
    ------
    ArgumentError : something that is not a Module.

    Examples
    --------
    >>> import dynamic as tw
    >>> model = tw.nn.Sequential(tw.nn.Linear(3, 4), tw.nn.ReLU(), tw.nn.Linear(4, 2))
    >>> [name for name, _ in model.named_parameters()]
    ['0.weight', '0.bias', '2.weight', '2.bias']
    """

    def __init__(self, *modules: Any) -> None:
        super().__init__()
        named = modules[0] if len(modules) == 1 and isinstance(modules[0], dict) else None
        for name, module in (named or {str(i): m for i, m in enumerate(modules)}).items():
            if not isinstance(module, Module):
                raise ArgumentError(f"{type(module).__name__} is not a Module subclass")
            setattr(self, name, module)

    def forward(self, x: Any) -> Any:
        """Run all modules in order."""
        for module in self._modules.values():
            x = module(x)
        return x

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __getitem__(self, index: int) -> Module:
        return list(self._modules.values())[index]
