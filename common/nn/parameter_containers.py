"""Parameters in lists and dictionaries, which a module finds there."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from common.nn.containers import ByName
from common.nn.module import Module
from common.tensor.arrays import refuse_copied_rows
from common.tensor.leaf import Parameter


class ParameterDict(ByName):
    """Parameters in a dictionary.

    Parameters
    ----------
    parameters : a mapping, or pairs of names and parameters; tensors become parameters.

    Examples
    --------
    >>> import numpy as np, dynamic as tw
    >>> table = tw.nn.ParameterDict({"w": tw.nn.Parameter(np.ones(2, np.float32))})
    >>> [name for name, _ in table.named_parameters()]
    ['w']
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__(parameters)

    @property
    def _table(self) -> dict[str, Any]:  # type: ignore[override]
        return self._parameters

    def __setitem__(self, name: str, value: Any) -> None:
        self.register_parameter(name, _parameter(value))

    def update(self, members: Any) -> None:
        """Add or replace parameters: pairs of names and parameters, or a mapping, of which a dict is sorted by names.

        PyTorch sorts dicts, whose order meant nothing in older Pythons; a model has its parameters in the same order
        with both.
        """
        in_order = isinstance(members, (OrderedDict, ParameterDict)) or not isinstance(members, Mapping)
        super().update(members if in_order else sorted(members.items()))

    def get(self, name: str, default: Any = None) -> Any:
        """The parameter of a name, or `default`."""
        return self._table.get(name, default)

    def setdefault(self, name: str, default: Any = None) -> Any:
        """The parameter of a name, which is `default` from now on if there is none."""
        if name not in self:
            self[name] = default
        return self[name]

    def popitem(self) -> tuple[str, Parameter]:
        """Take out the last parameter, with its name."""
        return self._table.popitem()

    def copy(self) -> ParameterDict:
        """Another dictionary of the same parameters."""
        return ParameterDict(OrderedDict(self.items()))

    def fromkeys(self, names: Iterable[str], default: Any = None) -> ParameterDict:
        """A dictionary of these names, each with a parameter of `default`."""
        return ParameterDict((name, default) for name in names)

    def __or__(self, other: Any) -> ParameterDict:
        both = self.copy()
        both.update(other)
        return both

    def __ror__(self, other: Any) -> ParameterDict:
        return ParameterDict(other) | self

    def __ior__(self, other: Any) -> Self:
        self.update(other)
        return self

    def extra_repr(self) -> str:
        """A line per parameter."""
        return _shown(self._parameters)


class ParameterList(Module):
    """Parameters in a list.

    Parameters
    ----------
    values : the parameters in order, or None; tensors become parameters.

    Examples
    --------
    >>> import numpy as np, dynamic as tw
    >>> weights = tw.nn.ParameterList([tw.nn.Parameter(np.ones(2, np.float32))])
    >>> [name for name, _ in weights.named_parameters()]
    ['0']
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self.extend([] if values is None else values)

    def append(self, value: Any) -> ParameterList:
        """Add a parameter at the end."""
        self.register_parameter(str(len(self)), _parameter(value))
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Add parameters at the end.

        Raises
        ------
        AllocationError : the rows of an expanded array, each of which becomes a parameter, do not fit into memory.
        """
        refuse_copied_rows("extend", values)
        for value in list(values):
            self.append(value)
        return self

    def __iadd__(self, other: Iterable[Any]) -> ParameterList:
        return self.extend(other)

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[Parameter]:
        return iter(self._parameters.values())

    def __getitem__(self, index: Any) -> Any:
        found = list(self._parameters.values())[index]
        return ParameterList(found) if isinstance(index, slice) else found

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, str(range(len(self))[index]), _parameter(value))

    def extra_repr(self) -> str:
        """A line per parameter."""
        return _shown(self._parameters)


def _shown(parameters: dict[str, Any]) -> str:
    """A line per parameter: name, dtype and size."""
    sizes = {name: "x".join(map(str, p.shape)) for name, p in parameters.items()}
    lines = [f"  ({name}): Parameter containing: [{p.dtype} of size {sizes[name]}]" for name, p in parameters.items()]
    return "\n".join(lines)


def _parameter(x: Any) -> Parameter:
    return x if isinstance(x, Parameter) else Parameter(x)
