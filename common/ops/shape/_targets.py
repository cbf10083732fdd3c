"""Orders of dimensions and sizes that calls of views ask for: worked out once for numbers, anew for symbolic sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from common.core.errors import ShapeError
from common.core.int_arguments import integers
from common.core.sizes import meant, same


def order(dims: tuple[Any, ...], ndim: int) -> tuple[int, ...]:
    """The dimensions that `permute` is asked for."""
    from common.core.int_arguments import normalize_dim

    order = tuple(normalize_dim(d, ndim, "permute") for d in dims)
    if sorted(order) != list(range(ndim)):
        raise ShapeError(f"permute(): dims {dims} is not a permutation of {ndim} dimensions")
    return order


known_order = lru_cache(maxsize=1024)(order)


def swap(ndim: int, dim0: int, dim1: int) -> tuple[int, ...]:
    """All dimensions in order, but for two."""
    from common.core.int_arguments import normalize_dim

    order = list(range(ndim))
    a, b = (normalize_dim(d, ndim, "transpose") for d in (dim0, dim1))
    if order:
        order[a], order[b] = order[b], order[a]
    return tuple(order)


known_swap = lru_cache(maxsize=1024)(swap)


def expansion(old: tuple[Any, ...], shape: tuple[Any, ...]) -> tuple[Any, ...]:
    """The sizes that `expand` is asked for."""
    target = [meant(n) for n in integers(shape, "expand", "size")]
    lead = len(target) - len(old)
    if lead < 0:
        raise ShapeError(f"expand(): {len(old)} dimensions do not fit into shape {tuple(target)}")
    for i, n in enumerate(target):
        if isinstance(n, int) and n < 0:
            if i < lead or n < -1:
                raise ShapeError(f"expand(): {n} is not allowed in dimension {i}, which is new or would be negative")
            target[i] = old[i - lead]
    for have, want in zip(old, target[lead:], strict=True):
        if not (isinstance(have, int) and have == 1) and not same(have, want) and have != want:
            raise ShapeError(f"expand(): size {have} cannot become {want}: only sizes of 1 expand")
    return tuple(target)


known_expansion = lru_cache(maxsize=1024)(expansion)


def out_of_range(extent: Any, dim: int) -> Mapping[int, str]:
    """Meanings of the statuses of kernels with indices into one dimension."""
    from common.kernels.arrays.coordinates import WrongIndex

    return WrongIndex((extent,), dim, wrap=False)


def refuse_unless_equal(op: str, a: Sequence[Any], b: Sequence[Any], but: int = -1) -> None:
    """Refuse two shapes that differ, except in dimension `but`: a kernel would read or write beyond one of them.

    Raises
    ------
    ShapeError : they differ.
    """
    if len(a) != len(b) or any(
        d != but and not same(m, n) and m != n for d, (m, n) in enumerate(zip(a, b, strict=True))
    ):
        raise ShapeError(f"{op}(): an index of shape {list(b)} does not belong to elements of shape {list(a)}")
