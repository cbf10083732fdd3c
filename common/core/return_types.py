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

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from common.core import absent

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

#: Names of named tuples, by the file of the function that returns them.
_HOMES = {
    "common.core.return_types": "cummax cummin kthvalue max median min mode nanmedian sort topk",
    "common.ops.linalg.factorizations": "linalg_cholesky_ex linalg_lu linalg_lu_factor linalg_lu_factor_ex",
    "common.ops.linalg.older_names": "svd",
    "common.ops.linalg.orthogonal": "geqrf linalg_qr",
    "common.ops.linalg.solving": "linalg_inv_ex linalg_slogdet linalg_solve_ex triangular_solve",
    "common.ops.linalg.spectral": "linalg_eigh linalg_lstsq linalg_svd",
    "common.ops.linalg.symmetric": "linalg_ldl_factor linalg_ldl_factor_ex",
    "common.ops.math.float_parts": "frexp",
    "common.ops.reduce.histograms": "histogram histogramdd",
    "common.ops.reduce.statistics": "aminmax",
}
#: Each name, and the file.
KINDS = {name: home for home, names in _HOMES.items() for name in names.split()}


def kind(space: str, name: str) -> Any:
    """The named tuple of a function, for the module `space` of an engine."""
    if name not in KINDS:
        absent.refuse(space, name)
    importlib.import_module(KINDS[name])
    return _KINDS[name]
