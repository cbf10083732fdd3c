"""Whether a rewrite of a graph changes a bit: both graphs are run by the interpreter on the same arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from common.core.errors import CompileError
from static.graph import Graph, Value
from static.running.interpreter import interpret, with_room


def check_parity(before: Graph, after: Graph, name: str, *, arrays: Sequence[Any], env: Mapping[Any, int]) -> None:
    """Run a graph and what a pass made of it, and compare outputs and written state bit by bit.

    Parameters
    ----------
    name : of the pass.
    arrays : of the graph's inputs; they are copied, and nothing is written to them.
    env : values of the dimension atoms.

    Raises
    ------
    CompileError : names the pass, the first output that differs and the line that made it, the element, and the
        distance in ulp.
    """
    results = []
    for graph in before, after:
        copies = [np.array(x) for x in arrays]
        outputs = with_room(partial(interpret, graph, copies), env)
        results.append([*outputs, *(copies[graph.inputs.index(effect.state)] for effect in graph.effects)])
    values = before.results
    if len(values) != len(results[1]):
        raise CompileError(f"the pass {name} changes the number of results from {len(values)} to {len(results[1])}")
    for i, (value, x, y) in enumerate(zip(values, *results, strict=True)):
        told = difference(x, y)
        if told:
            raise CompileError(f"the pass {name} changes bits of result {i}, made by {_origin(value)}: {told}")


def difference(x: np.ndarray, y: np.ndarray) -> str:
    """How two arrays differ first, in words; empty if all bits are equal.

    Examples
    --------
    >>> difference(np.float32([1, 2]), np.float32([1, 2.0000002]))
    'element (1,) is 2.0 before and 2.0000002 after, 1 ulp away; 1 of 2 elements differ'
    """
    if x.shape != y.shape or x.dtype != y.dtype:
        return f"{x.dtype}{list(x.shape)} becomes {y.dtype}{list(y.shape)}"
    kind = np.dtype(f"i{x.dtype.itemsize}")
    old, new = np.ascontiguousarray(x).view(kind).reshape(x.shape), np.ascontiguousarray(y).view(kind).reshape(x.shape)
    places = np.argwhere(old != new)
    if not len(places):
        return ""
    at = tuple(map(int, places[0]))
    told = f"element {at} is {x[at]!s} before and {y[at]!s} after"
    if x.dtype.kind == "f" and np.isfinite(x[at]) and np.isfinite(y[at]):
        told += f", {abs(_rank(old[at]) - _rank(new[at]))} ulp away"
    return f"{told}; {len(places)} of {x.size} elements differ"


def _rank(bits: Any) -> int:
    """The position of a float among all floats of its dtype, from its bits as a signed integer; both zeros are 0."""
    number = int(bits)
    return number if number >= 0 else -(number + 2 ** (8 * bits.dtype.itemsize - 1))


def _origin(value: Value) -> str:
    file, line, _ = value.node.source
    return f"{value.node.name} at {file}:{line}"
