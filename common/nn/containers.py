"""Modules made of modules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, Self

from common.core import mode
from common.core.errors import ArgumentError, IndexRangeError
from common.core.int_arguments import integer
from common.nn.module import Module
from common.nn.module_hooks import of_all
from common.nn.where import name_module
from common.tensor.base import TensorBase

#: The general call of a module; `Sequential` skips most of it between its modules.
call = Module.__call__


class _InOrder(Module):
    """Modules one can count and change as a list; those behind a change are numbered anew."""

    def append(self, module: Module) -> Self:
        """Add a module at the end."""
        self.add_module(str(len(self)), _module(module))
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add modules at the end."""
        for module in list(modules):
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Self:
        """Add a module before the one at `index`.

        Raises
        ------
        IndexRangeError : `index` is not in [-n, n], for n modules.
        """
        modules = list(self)
        if not -len(modules) <= index <= len(modules):
            raise IndexRangeError(f"Index out of range: {index} for {len(modules)} modules")
        modules.insert(index, _module(module))
        self.append(module)  # if it is refused, the others stay
        return self._renew(modules)

    def pop(self, index: int = -1) -> Module:
        """Take a module out."""
        found = list(self)[index]
        del self[index]
        return found

    def _renew(self, modules: Iterable[Module]) -> Self:
        self._modules.clear()
        return self.extend(modules)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, list(self._modules)[index], _module(module))

    def __delitem__(self, index: int | slice) -> None:
        modules = list(self)
        del modules[index]
        self._renew(modules)

    def __iadd__(self, other: Iterable[Module]) -> Self:
        return self.extend(other)


class Sequential(_InOrder):
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
        for name, module in ({str(i): m for i, m in enumerate(modules)} if named is None else named).items():
            self.add_module(name, _module(module))

    def forward(self, input: Any) -> Any:
        """Run all modules in order."""
        module: Any = self
        try:
            for module in self._modules.values():
                plain = module._module_hooks is None and type(module).__call__ is call and isinstance(input, TensorBase)
                input = module.forward(input) if plain and not mode.tracing and not of_all.used else module(input)
        except Exception as error:
            if module is None:
                raise ArgumentError("Sequential: 'NoneType' object is not callable: a module is None") from error
            name_module(error, module)
            raise
        return input

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return Sequential(dict(list(self._modules.items())[index]))
        return list(self._modules.values())[index]

    def __add__(self, other: Iterable[Module]) -> Sequential:
        return Sequential(*self, *other)

    def __mul__(self, times: int) -> Sequential:
        return Sequential(*list(self) * integer(times, "Sequential.__mul__", "times"))

    __rmul__ = __mul__

    def __imul__(self, times: int) -> Self:
        return self.extend(list(self) * (integer(times, "Sequential.__imul__", "times") - 1))


class ModuleList(_InOrder):
    """Modules in a list, for a `forward` that uses them as it likes; their parameters are found.

    Parameters
    ----------
    modules : the modules in order; None for none.

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

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        self.extend([] if modules is None else modules)

    def _shown_children(self) -> list[str]:
        """Equal neighbours are shown once, with their number."""
        groups = [(text, [int(name) for name, _ in same]) for text, same in
                  groupby(self._modules.items(), key=lambda item: repr(item[1]))]  # fmt: skip
        return [
            f"({at[0]}): {text}" if len(at) == 1 else f"({at[0]}-{at[-1]}): {len(at)} x {text}" for text, at in groups
        ]

    def __getitem__(self, index: Any) -> Any:
        found = list(self._modules.values())[index]
        return ModuleList(found) if isinstance(index, slice) else found

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])


class ByName(Module):
    """The base of dictionaries of modules and of parameters.

    Parameters
    ----------
    members : a mapping, or pairs of names and members.
    """

    _table: dict[str, Any]

    def __init__(self, members: Any = None) -> None:
        super().__init__()
        if members is not None:
            self.update(members)

    def update(self, members: Any) -> None:
        """Add or replace members: a mapping, or pairs of names and members."""
        pairs = members.items() if hasattr(members, "items") else members
        for name, member in pairs:
            self[name] = member

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._table.keys()

    def values(self) -> Iterable[Any]:
        """The members."""
        return self._table.values()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Pairs of names and members."""
        return self._table.items()

    def pop(self, name: str) -> Any:
        """Take a member out."""
        return self._table.pop(name)

    def clear(self) -> None:
        """Take all members out."""
        self._table.clear()

    def __len__(self) -> int:
        return len(self._table)

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._table)

    def __contains__(self, name: str) -> bool:
        return name in self._table

    def __getitem__(self, name: str) -> Any:
        return self._table[name]

    def __delitem__(self, name: str) -> None:
        del self._table[name]


class ModuleDict(ByName):
    """Modules in a dictionary, for a `forward` that uses them as it likes; their parameters are found.

    Parameters
    ----------
    modules : a mapping, or pairs of names and modules.

    Raises
    ------
    ArgumentError : something that is not a Module.

    Examples
    --------
    >>> import dynamic as tw
    >>> heads = tw.nn.ModuleDict({"a": tw.nn.Linear(3, 1), "b": tw.nn.Linear(3, 2)})
    >>> [name for name, _ in heads.named_parameters()]
    ['a.weight', 'a.bias', 'b.weight', 'b.bias']
    """

    @property
    def _table(self) -> dict[str, Any]:  # type: ignore[override]
        return self._modules

    def __init__(self, modules: Any = None) -> None:
        super().__init__(modules)

    def __setitem__(self, name: str, module: Module) -> None:
        self.add_module(name, _module(module))


def _module(x: Any) -> Any:
    """A module, or None, which keeps the place for one."""
    if x is not None and not isinstance(x, Module):
        raise ArgumentError(f"{type(x).__name__} is not a Module subclass")
    return x
