"""The transpose of broadcasting: cotangents return to the shapes and dtypes of their operands."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from common.core import mode
from common.core.dispatch import Attrs, apply
from common.core.op import CAST, REGISTRY, UNBROADCAST
from common.core.sizes import same, same_shape

INTS = frozenset((int,))


def fit(c: Any, shape: Any, dtype: Any) -> Any:
    """`c` un-broadcast and cast to the slot it goes to."""
    if c.shape != shape if type(c) is np.ndarray else not same_shape(c.shape, shape):
        c = sum_to(c, shape)
    if c.dtype != dtype:
        c = REGISTRY[CAST](c, dtype=dtype, x_dtype=c.dtype)
    return c


def reshaped(x: Any, shape: tuple[Any, ...], node_name: str | None) -> Any:
    """`x` under another shape with as many elements, as the node of a function; None for that of `reshape`."""
    if not is_tensor(x) and same_shape(shape, x.shape):
        return x
    plain = not mode.tracing and INTS.issuperset(map(type, shape))
    attrs = known_sizes(shape, node_name) if plain else Attrs(node_name=node_name, new_shape=shape)
    return apply(REGISTRY["reshape"], (x,), attrs)


@lru_cache(maxsize=4096)
def known_sizes(shape: tuple[int, ...], node_name: str | None = None) -> Attrs:
    """The attributes of ops that are asked for sizes."""
    return Attrs(node_name=node_name, new_shape=shape)


def is_tensor(x: Any) -> bool:
    """Whether `x` is a tensor, of some engine."""
    return getattr(type(x), "__op_priority__", 0) > 1


def sum_to(x: Any, shape: tuple[Any, ...]) -> Any:
    """The transpose of broadcasting: one sum over all dimensions in which `shape` was repeated."""
    if same_shape(x.shape, shape):
        return x
    lead = x.ndim - len(shape)
    # Only what is repeated is summed: a sum over one element, or over none of the dimensions, would still turn -0
    # into +0. In a trace `!=` therefore becomes a guard on a size that is 1 in some calls.
    ones = [i for i in range(x.ndim) if i < lead or (same(shape[i - lead], 1) and x.shape[i] != 1)]
    if ones:
        return reshaped(REGISTRY[UNBROADCAST](x, dim=tuple(ones), keepdim=True), shape, None)
    y = reshaped(x, shape, None)
    if getattr(x, "grad_fn", None) is not None:  # equal sizes of other names, in a trace only: one tensor for the tape,
        y.grad_fn, y.output_nr = x.grad_fn, x.output_nr  # or what it is given would be added up in another order
    return y
