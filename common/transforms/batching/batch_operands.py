"""Operands of rules: what examples share and what differs between them, with the dimension of the examples in front."""

from __future__ import annotations

from typing import Any

from common.ops.shape.view import expand_, permute_, reshape_
from common.tensor.create import lift
from common.transforms.batching.batched import Batched


def is_mapped(x: Any) -> bool:
    """Whether an operand differs between examples."""
    return type(x) is Batched and x.mapped


def bare(x: Any) -> Any:
    """The tensor, or number, behind an operand that all examples share, or whose dimensions need no alignment."""
    return x.value if type(x) is Batched else x


def spread(x: Any, count: Any) -> Any:
    """An operand with all examples along dimension 0, also where they share it."""
    if not is_mapped(x):
        value = bare(x) if type(x) is Batched else lift(x)
        return expand_(value, new_shape=(count, *value.shape))
    return x.value


def aligned(x: Any, ndim: int, count: Any) -> Any:
    """A mapped operand with sizes of 1 behind the examples, until each has `ndim` dimensions."""
    lack = ndim - len(x.spec.shape)
    return reshape_(x.value, new_shape=(count, *(1,) * lack, *x.spec.shape)) if lack else x.value


def folded(value: Any) -> Any:
    """All examples along dimension 0 of what they have there themselves."""
    shape = value.shape
    return reshape_(value, new_shape=(shape[0] * shape[1], *shape[2:]))


def swapped(value: Any) -> Any:
    """The first two dimensions exchanged."""
    return permute_(value, dims=(1, 0, *range(2, len(value.shape))))


def in_front(value: Any, dim: int) -> Any:
    """A dimension put first."""
    rest = [d for d in range(len(value.shape)) if d != dim]
    return value if dim == 0 else permute_(value, dims=(dim, *rest))


def at(value: Any, dim: int) -> Any:
    """The first dimension put elsewhere; the inverse of `in_front`."""
    rest = list(range(1, len(value.shape)))
    return value if dim == 0 else permute_(value, dims=(*rest[:dim], 0, *rest[dim:]))
