"""What is known of a value without running anything: shape, dtype, and whether it is a weak number."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from common.dim import named


class Spec(NamedTuple):
    """Shape and dtype of a value.

    Attributes
    ----------
    shape : tuple of int or Dim; a `Dim` only inside a trace.
    dtype : numpy dtype.
    weak : a 0-d number whose dtype gives way to that of the tensors it meets (see `common.dtypes`).
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
    """What has a spec in place of elements, and with it a shape and a dtype: an operand of ops, and no array."""

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


def numel(shape: tuple[Any, ...]) -> Any:
    """The number of elements of `shape`, symbolic where the shape is."""
    total: Any = 1
    for extent in shape:
        total = total * extent
    return total


def around(shape: tuple[Any, ...], dim: int) -> tuple[Any, Any, Any]:
    """Sizes before, at and after a dimension, as a kernel over (outer, extent, inner) takes them."""
    return numel(shape[:dim]), shape[dim], numel(shape[dim + 1 :])
