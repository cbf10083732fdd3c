"""Named tuples of functions that return several tensors: they have PyTorch's names, and are shown as there.

Examples
--------
>>> import dynamic as tw
>>> tw.max(tw.tensor([[1.0, 3.0], [2.0, 0.0]]), 1)
torch.return_types.max(
values=tensor([3., 2.]),
indices=tensor([1, 0]))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

Kind = TypeVar("Kind", bound=type)
_KINDS: dict[str, Any] = {}


def returned(name: str) -> Callable[[Kind], Kind]:
    """A decorator of the named tuple that a function returns, by its name in PyTorch's `return_types`."""

    def named(kind: Kind) -> Kind:
        _KINDS[name] = kind
        kind.__name__ = kind.__qualname__ = name
        kind.__module__ = __name__
        kind.__repr__ = _shown  # type: ignore[assignment]
        return kind

    return named


def _shown(self: Any) -> str:
    parts = ",\n".join(f"{field}={part!r}" for field, part in zip(self._fields, self, strict=True))
    return f"torch.return_types.{type(self).__name__}(\n{parts})"


class ValuesAndIndices(NamedTuple):
    """Elements, and where they stood.

    Attributes
    ----------
    values : elements of what was asked.
    indices : int64, their positions.
    """

    values: Any
    indices: Any


for _name in ("cummax", "cummin", "kthvalue", "max", "median", "min", "mode", "nanmedian", "sort", "topk"):
    returned(_name)(type(_name, (ValuesAndIndices,), {"__slots__": (), "__doc__": ValuesAndIndices.__doc__}))


def values_and_indices(name: str, values: Any, indices: Any) -> Any:
    """What the function `name` returns."""
    return _KINDS[name](values, indices)


def __getattr__(name: str) -> Any:
    if name in _KINDS:
        return _KINDS[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["returned", "values_and_indices"]
