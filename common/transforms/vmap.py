"""`vmap`: a function of examples as a function of batches.

It is defined by a loop: the function runs once per example, and results are stacked. So every example has exactly the
bits that it has alone, whatever the function does - branch on its data, draw numbers, call other transforms -, and
derivatives of any order follow from the ops that ran. PyTorch's batching rules run an op on all examples at once; that
is faster in the eager engine, and gives other bits (a batched product sums in another order than a single one). In a
trace the loop is unrolled: the size of the batch is part of the program.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from common.core import mode
from common.core.errors import ArgumentError, GradientError, ShapeError
from common.core.int_arguments import shown
from common.core.tree import LEAF, MAPS, NODES, apart, flatten, unflatten
from common.ops.shape.cat import stack
from common.ops.shape.split import unbind
from common.random.generator import counted, default_generator
from common.tensor.base import TensorBase
from common.tensor.create import lift

Function = Callable[..., Any]


def vmap(
    func: Function, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: int | None = None
) -> Function:
    """A function that maps `func` over a dimension of its arguments.

    Parameters
    ----------
    func : of tensors, in any structure; returns tensors in any structure.
    in_dims : which dimension of the positional arguments to map over: one number, or a tuple with a number, None (hand
        the argument through) or a structure of such per argument. Keyword arguments are handed through.
    out_dims : where the results have it: one number, or a structure of such.
    randomness : "error" refuses draws from the default generator; "different" draws anew for each example; "same" gives
        all examples the same numbers.
    chunk_size : how many examples PyTorch runs at once; here they run one by one.

    Returns
    -------
    callable : of the same arguments, with the mapped dimension.

    Raises
    ------
    ArgumentError : `in_dims` or `out_dims` do not fit the arguments or results, or `func` returns no tensor.
    ShapeError : sizes of the mapped dimension differ, or are 0.
    GradientError : `func` draws random numbers, and `randomness` is "error".

    Examples
    --------
    >>> import dynamic as tw
    >>> x = tw.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> tw.func.vmap(lambda row: row.sum())(x)
    tensor([3., 7.])
    >>> tw.func.vmap(tw.func.grad(lambda row: (row * row).sum()))(x)
    tensor([[2., 4.],
            [6., 8.]])
    """
    if randomness not in ("error", "different", "same"):
        raise ArgumentError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if chunk_size is not None and chunk_size <= 0:
        raise ArgumentError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = flatten(args)
        leaves = [lift(x) for x in leaves]
        dims = _spread(in_dims, structure, "in_dims")
        columns, count = _examples(leaves, dims)
        rows, shape = [], None
        for i in range(count):
            example = unflatten(structure, [c if d is None else c[i] for c, d in zip(columns, dims)])
            with counted() as draws:
                flat, shape = flatten(func(*example, **kwargs))
            _settle(draws.count, randomness, last=i == count - 1)
            rows.append(_tensors(flat))
        return _stacked(rows, shape, out_dims)

    return mapped


def _spread(dims: Any, structure: Any, what: str) -> list[Any]:
    """A dimension per leaf of a structure."""
    if structure is None:
        return []
    if structure == LEAF:
        if dims is not None and (not isinstance(dims, int) or isinstance(dims, bool)):
            raise ArgumentError(f"vmap: {what} must be an int, None, or as nested as the arguments, got {shown(dims)}")
        return [dims]
    kind, parts = structure[0], structure[-1]
    if dims is None or isinstance(dims, int):
        return [d for part in parts for d in _spread(dims, part, what)]
    members = dims
    if kind in MAPS and isinstance(dims, dict):
        members = [dims.get(name) for name in structure[1]]
    elif type(dims) is kind and (node := NODES.get(kind)) is not None:
        members = apart(node, dims)[0]
    if not isinstance(members, (tuple, list)) or len(members) != len(parts):
        raise ArgumentError(
            f"vmap: {what} is not compatible with the structure of the {'inputs' if what == 'in_dims' else 'outputs'}: "
            f"{dims!r} for {len(parts)} members"
        )
    return [d for each, part in zip(members, parts, strict=True) for d in _spread(each, part, what)]


def _examples(leaves: Sequence[Any], dims: Sequence[Any]) -> tuple[list[Any], int]:
    """Per leaf its examples, or itself where it is not mapped; and their number."""
    sizes = []
    for x, dim in zip(leaves, dims, strict=True):
        if dim is None:
            continue
        if not isinstance(x, TensorBase):
            raise ArgumentError(f"vmap: Got in_dim={dim} for an input but the input is of type {type(x).__name__}")
        if not -x.ndim <= dim < x.ndim:
            raise ArgumentError(
                f"vmap: Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {x.ndim} so "
                f"expected in_dim to satisfy -{x.ndim} <= in_dim < {x.ndim}."
            )
        sizes.append(x.shape[dim])
    if not sizes:
        raise ArgumentError(
            "vmap: at least one Tensor must be mapped over; this call has in_dim=None for all inputs, or no inputs"
        )
    if any(n != sizes[0] for n in sizes):
        raise ShapeError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{[int(n) for n in sizes]} for the mapped dimension"
        )
    count = int(sizes[0])
    if not count:
        raise ShapeError("vmap: the mapped dimension has size 0, so nothing tells what the function returns")
    return [x if dim is None else unbind(x, dim) for x, dim in zip(leaves, dims, strict=True)], count


def _settle(drawn: Any, randomness: str, last: bool) -> None:
    """Refuse draws, or take the generator back to where the next example draws the same."""
    if randomness == "different" or (isinstance(drawn, int) and drawn == 0):
        return
    if randomness == "error":
        raise GradientError(
            "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
            "randomness flags on vmap or perform the randomness operation out of vmap"
        )
    if not last:
        offset = default_generator.offset
        if mode.current_trace() is None:
            offset.payload[...] -= drawn
        else:
            with mode.no_grad():
                offset.sub_(drawn)


def _tensors(flat: Sequence[Any]) -> list[Any]:
    for x in flat:
        if not isinstance(x, TensorBase):
            raise ArgumentError(f"vmap: the function must only return Tensors, got type {type(x).__name__} as a return")
    return list(flat)


def _stacked(rows: Sequence[Sequence[Any]], structure: Any, out_dims: Any) -> Any:
    """Results of all examples together."""
    dims = _spread(out_dims, structure, "out_dims")
    columns = zip(*rows, strict=True)
    return unflatten(
        structure, [column[0] if d is None else stack(column, d) for column, d in zip(columns, dims, strict=True)]
    )


__all__ = ["vmap"]
