"""The tree in which the contributions of micro-batches are added: it depends on their number, not on who has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Span = tuple[int, int]
"""A node of the tree: what it adds up, from the first to before the last."""

Leaf = TypeVar("Leaf")


def halves(span: Span) -> tuple[Span, Span]:
    """The two nodes whose sum a node is: the left one has a power of two of leaves, as many as there can be.

    Examples
    --------
    >>> halves((0, 8)), halves((4, 7))
    (((0, 4), (4, 8)), ((4, 6), (6, 7)))
    """
    low, high = span
    middle = low + (1 << (high - low - 1).bit_length() - 1)
    return (low, middle), (middle, high)


def spans_within(tree: Span, own: Span) -> Iterator[Span]:
    """The largest nodes of a tree all of whose leaves are among those of a rank, in order.

    Examples
    --------
    >>> list(spans_within((0, 8), (0, 4))), list(spans_within((0, 8), (2, 5)))
    ([(0, 4)], [(2, 4), (4, 5)])
    """
    if tree[0] >= own[1] or tree[1] <= own[0]:
        return
    if own[0] <= tree[0] and tree[1] <= own[1]:
        yield tree
        return
    for half in halves(tree):
        yield from spans_within(half, own)


def added(tree: Span, parts: Mapping[Span, NDArray[np.generic]]) -> NDArray[np.generic]:
    """The sum over a tree, of those of its nodes that are known; each sum is left plus right.

    Examples
    --------
    >>> x = {(i, i + 1): np.float32([i]) for i in range(5)}
    >>> added((0, 5), x)
    array([10.], dtype=float32)
    """
    if tree in parts:
        return parts[tree]
    left, right = halves(tree)
    total: NDArray[np.generic] = np.add(added(left, parts), added(right, parts))
    return total


def share_of(rank: int, ranks: int, count: int) -> Span:
    """The part of `count` things that a rank has, in order and as even as can be.

    Examples
    --------
    >>> [share_of(rank, 3, 8) for rank in range(3)]
    [(0, 2), (2, 5), (5, 8)]
    """
    return count * rank // ranks, count * (rank + 1) // ranks
