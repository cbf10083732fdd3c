"""Modules made of modules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
            setattr(self, name, _module(module))

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


class ModuleList(Module):
    """Modules in a list, for a `forward` that uses them as it likes; their parameters are found.

    Parameters
    ----------
    modules : the modules in order.

    Raises
    ------
    ArgumentError : something that is not a Module.

    Examples
    --------
    >>> import dynamic as tw
    >>> layers = tw.nn.ModuleList(tw.nn.Linear(3, 3) for _ in range(2))
    >>> [name for name, _ in layers.append(tw.nn.Linear(3, 1)).named_parameters()][-1], len(layers)
    ('2.bias', 3)
    """

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        super().__init__()
        self.extend(modules)

    def append(self, module: Module) -> ModuleList:
        """Add a module at the end."""
        setattr(self, str(len(self)), _module(module))
        return self

    def extend(self, modules: Iterable[Module]) -> ModuleList:
        """Add modules at the end."""
        for module in list(modules):
            self.append(module)
        return self

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __getitem__(self, index: Any) -> Any:
        found = list(self._modules.values())[index]
        return ModuleList(found) if isinstance(index, slice) else found

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, str(range(len(self))[index]), _module(module))


def _module(x: Any) -> Module:
    if not isinstance(x, Module):
        raise ArgumentError(f"{type(x).__name__} is not a Module subclass")
    return x
