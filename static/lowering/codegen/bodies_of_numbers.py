"""Bodies of loops whose values have a few elements each, as functions of numbers: states of filters, small matrices."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from common.core.numerics import LANES
from common.core.sizes import Dim, hint
from static.graph import Graph, Node, Value
from static.graph.elements import Elements, Key, Mask, is_elementwise, is_reduction, product_sizes, shape_of, size_of

MOST = 64
"""Elements of a value."""
MOST_ELEMENTS = 1024
"""Elements of all values that a body computes."""
SETTLED = 8
"""Sizes up to which a loop is one for its sizes: those of states, seldom of a batch."""

Size = Callable[[Any], Any]
_PLACED = ("join", "stack up", "pad")
"""How results are made of elements of operands, or of zeros."""


def of_numbers(region: Graph) -> tuple[Graph, list[int]] | None:
    """The region with each element of its results as a result of its own, and how many each has; None if it is not made
    of numbers.
    """
    apart = _functions(region, size_of)
    if apart is None:
        return None
    places = [list(np.ndindex(*shape_of(value))) for value in region.outputs]
    return Elements(region, apart).of_region(places), list(map(len, places))


def settle_few(region: Graph) -> None:
    """Let sizes of a body be those of this call if it is made of numbers then, which it adds up or multiplies.

    What goes element by element is one kernel for any size. Where rows of three numbers are added up, a loop with a
    kernel for each function takes several times as long as one over numbers. Rows of a product may be those of a batch.
    """
    products = [product_sizes(node, hint) for node in region.nodes if _is_product(node)]
    if any(rows > 1 and columns > 1 for rows, columns, _ in products):
        return
    if not (products or any(map(is_reduction, region.nodes))) or _functions(region, _guessed) is None:
        return
    for node in region.nodes:
        for n in [n for value in node.outputs for n in value.shape if isinstance(n, Dim)]:
            n.scope.concrete(n)


def _functions(region: Graph, size: Size) -> dict[Key, Mask] | None:
    """What computes numbers; None if something else is computed, or are too many.

    Parameters
    ----------
    size : the number that a size is, or else what it is.
    """
    apart: dict[Key, Mask] = {}
    total = 0
    for node in region.nodes:
        for value in node.outputs:
            total += prod(map(size, value.shape)) if _is_small(value, size) else MOST_ELEMENTS
        if total > MOST_ELEMENTS:
            return None
        if node.op is None or node.op.kind == "view" or not node.operands or node.op.parts in _PLACED:
            continue
        if not _is_function(node, size):
            return None
        apart[node.outputs[0].key] = (True,) * len(node.outputs[0].shape)
    return None if total > MOST_ELEMENTS or region.effects else apart


def _is_small(value: Value, size: Size) -> bool:
    shape = tuple(map(size, value.shape))
    return all(type(n) is int for n in shape) and 0 < prod(shape) <= MOST


def _is_function(node: Node, size: Size) -> bool:
    """Whether each element of a result is a function of a few numbers."""
    if is_reduction(node):
        return _is_small(node.operands[0], size)
    return is_elementwise(node) or (_is_product(node) and _is_small_product(node, size))


def _is_product(node: Node) -> bool:
    return node.op is not None and node.op.product and set(node.attrs) == {"trans_a", "trans_b"}


def _is_small_product(node: Node, size: Size) -> bool:
    sizes = product_sizes(node, size)
    known = all(type(n) is int and 0 < n <= LANES for n in sizes) and node.outputs[0].dtype.kind == "f"
    return known and prod(sizes) <= MOST


def _guessed(n: Any) -> Any:
    """A size, as the number that it is in this call if that is small."""
    return hint(n) if hint(n) <= SETTLED else size_of(n)


__all__ = ["of_numbers", "settle_few"]
