"""Specs: shape, dtype and weakness of a value, known without running anything."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from common.core.polynomials import render
from common.core.sizes import Dim


class Spec(NamedTuple):
    """Shape and dtype of a value.

    Attributes
    ----------
    shape : tuple of int or Dim; a `Dim` only inside a trace.
    dtype : numpy dtype.
    weak : a 0-d number whose dtype gives way to that of the tensors it meets (see `common.core.dtypes`).
    """

    shape: tuple[Any, ...]
    dtype: np.dtype
    weak: bool = False

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def __str__(self) -> str:
        return f"{self.dtype.name}[{', '.join(map(named, self.shape))}]" + ("~" if self.weak else "")


class Specified:
    """An operand of ops that is no array: it has a spec, and with it a shape and a dtype."""

    __slots__ = ()
    __op_priority__ = 1
    __array_ufunc__ = None
    spec: Spec

    @property
    def shape(self) -> tuple[Any, ...]:
        """Sizes; Dims where they depend on the inputs."""
        return self.spec.shape

    @property
    def dtype(self) -> np.dtype:
        """The numpy dtype."""
        return self.spec.dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.spec.shape)


def named(value: Any) -> str:
    """A value as text with the names of the sizes in it, for pictures and listings of programs.

    Examples
    --------
    >>> from common.core.sizes import DimScope
    >>> n = DimScope(int, int).input(0, 1, 7)
    >>> print(n, named((n, 2 * n + 1)))
    7 (arg0.shape[1]=7, 2*arg0.shape[1] + 1=15)
    """
    if isinstance(value, Dim):
        return f"{render(value.terms)}={value.hint}"
    if isinstance(value, tuple) and any(isinstance(n, Dim) for n in value):
        parts = ", ".join(named(n) if isinstance(n, Dim) else repr(n) for n in value)
        return f"({parts},)" if len(value) == 1 else f"({parts})"
    return str(value)


def numel(shape: tuple[Any, ...]) -> Any:
    """The number of elements of `shape`, symbolic where the shape is."""
    total: Any = 1
    for extent in shape:
        total = total * extent
    return total


def around(shape: tuple[Any, ...], dim: int) -> tuple[Any, Any, Any]:
    """Sizes before, at and after a dimension, as a kernel over (outer, extent, inner) takes them."""
    return numel(shape[:dim]), shape[dim], numel(shape[dim + 1 :])
