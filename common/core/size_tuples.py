"""Sizes as a tuple with methods: the type of ``x.shape`` and ``x.size()``."""

from __future__ import annotations

from math import prod
from typing import Any

from common.core.sizes import Dim


class _SizeType(type):
    """Makes every tuple of ints an instance: numpy's shapes are plain tuples."""

    def __instancecheck__(cls, instance: object) -> bool:
        return type(instance) is Size or (
            type(instance) is tuple and all(type(n) is int or isinstance(n, Dim) for n in instance)
        )


class Size(tuple[Any, ...], metaclass=_SizeType):
    """Sizes of dimensions: what ``x.shape`` and ``x.size()`` give. Plain tuples of ints count as instances.

    Examples
    --------
    >>> Size([2, 3]), Size([2, 3]).numel(), isinstance((2, 3), Size)
    (torch.Size([2, 3]), 6, True)
    >>> Size([2, 3])[:1] + (4,)
    torch.Size([2, 4])
    """

    __slots__ = ()

    def numel(self) -> Any:
        """The number of elements that these sizes have; inside a trace it may be symbolic."""
        return prod(self)

    def __getitem__(self, key: Any) -> Any:
        part = tuple.__getitem__(self, key)
        return Size(part) if type(key) is slice else part

    def __add__(self, other: Any) -> Size:
        return Size((*self, *other)) if isinstance(other, tuple) else NotImplemented

    def __radd__(self, other: Any) -> Size:
        return Size((*other, *self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, count: Any) -> Size:
        return Size(tuple(self) * count)

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"
