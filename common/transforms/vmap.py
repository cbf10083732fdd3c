"""`vmap`: a function of examples as a function of batches.

The function runs once, on tensors that stand for one example and hold all of them; every op that it calls becomes one
op on all examples, see `common.transforms.batching`. So what it does costs as many ops as for one example, in the
eager engine and in a compiled program, and derivatives of any order are batched too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from common.core import mode
from common.core.errors import ArgumentError, IndexRangeError, ShapeError
from common.core.int_arguments import callable_argument, integer, shown
from common.core.tree import LEAF, flatten, unflatten
from common.ops.shape.cat import cat
from common.ops.shape.view import expand_
from common.random.generator import default_generator
from common.tensor.base import TensorBase
from common.tensor.create import lift
from common.transforms.batching.spread_dims import spread_dims

Function = Callable[..., Any]


def vmap(
    func: Function, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: int | None = None
) -> Function:
    """A function that maps `func` over a dimension of its arguments.

    Parameters
    ----------
    func : of tensors, in any structure; returns tensors in any structure. It runs once, and may not ask for Python
        numbers that differ between examples.
    in_dims : which dimension of the positional arguments to map over: one number, or a tuple with a number, None (hand
        the argument through) or a structure of such per argument. Keyword arguments are handed through.
    out_dims : where the results have it: one number, or a structure of such; None for what all examples share, tensors
        or not.
    randomness : "error" refuses random numbers; "different" draws for each example; "same" gives all examples the same
        numbers, in all chunks.
    chunk_size : how many examples to run at once, all by default; the function runs once per chunk.

    Returns
    -------
    callable : of the same arguments, with the mapped dimension.

    Raises
    ------
    ArgumentError : `in_dims` or `out_dims` do not fit the arguments or results, or a result with a dimension of
        examples is no tensor.
    ShapeError : sizes of the mapped dimension differ.
    GradientError : `func` draws random numbers, and `randomness` is "error"; or it writes what differs between examples
        to a tensor that they share.
    TraceError : a branch or a loop that examples leave alone, or that is compiled, writes to a tensor from outside it.
    ExampleError : `func` asks for elements, or for a result whose size depends on them.

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
    if chunk_size is not None and (chunk_size := integer(chunk_size, "vmap", "chunk_size")) <= 0:
        raise ArgumentError(f"vmap: chunk_size should be None or greater than 0. (got {shown(chunk_size)})")
    return _mapping(callable_argument(func, "vmap", "func"), in_dims, out_dims, randomness, lambda count: chunk_size)


def chunk_vmap(
    func: Function, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", chunks: int = 2
) -> Function:
    """`vmap` in a number of chunks, to save memory: all have the same size, the last may be smaller.

    Parameters
    ----------
    func, in_dims, out_dims, randomness : see `vmap`.
    chunks : how often the function runs; at most once per example.

    Raises
    ------
    ArgumentError : `chunks` is less than 1; or see `vmap`.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.func.chunk_vmap(lambda row: row.sum(), chunks=3)(tw.ones(7, 2))
    tensor([2., 2., 2., 2., 2., 2., 2.])
    """
    if (chunks := integer(chunks, "chunk_vmap", "chunks")) <= 0:
        raise ArgumentError(f"chunk_vmap: chunks should be greater than 0. (got {shown(chunks)})")
    func = callable_argument(func, "chunk_vmap", "func")
    return _mapping(func, in_dims, out_dims, randomness, lambda count: -(-int(count) // chunks) if chunks > 1 else None)


def _mapping(
    func: Function, in_dims: Any, out_dims: Any, randomness: str, size_of: Callable[[Any], int | None]
) -> Function:
    """The function of all examples; `size_of` their number is that of a chunk, None for one chunk."""
    if randomness not in ("error", "different", "same"):
        raise ArgumentError(
            f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {shown(randomness)}"
        )

    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        if not isinstance(in_dims, (int, tuple)):
            raise ArgumentError(
                "vmap: expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, "
                f"got: {type(in_dims)}"
            )
        if not args:
            raise ArgumentError(
                "vmap: got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a function with "
                "no inputs. The latter is unsupported"
            )
        leaves, structure = flatten(args)
        leaves = [lift(x) for x in leaves]
        dims = spread_dims(in_dims, structure, "in_dims")
        count = _count(leaves, dims)
        leaves = [_in_front(x, d) if d else x for x, d in zip(leaves, dims, strict=True)]
        parts, chunks, offset, start = [], _chunks(count, size_of(count)), default_generator.offset, None
        if randomness == "same" and len(chunks) > 1:
            with mode.no_grad():
                start = offset.clone()
        for first, size in chunks:
            if start is not None:
                with mode.no_grad():
                    offset.copy_(start)  # every chunk draws the numbers of the first
            part = [
                x if d is None else x if size is count else x[first : first + size]
                for x, d in zip(leaves, dims, strict=True)
            ]
            parts.append(_run(func, part, dims, structure, kwargs, size, randomness))
        return _joined(parts, out_dims)

    return mapped


def _in_front(x: Any, dim: int) -> Any:
    from common.transforms.batching.batch_operands import in_front  # most programs map over the first dimension

    return in_front(x, dim % x.ndim)


def _run(
    func: Function, leaves: Sequence[Any], dims: Sequence[Any], structure: Any, kwargs: Any, count: Any, randomness: str
) -> tuple[list[Any], Any]:
    """Results of all examples, as they are for one, and their structure."""
    from common.transforms.batching.batch_trace import BatchTrace  # most programs map nothing

    trace = BatchTrace(getattr(func, "__name__", "function"), count, randomness)
    arguments = [x if d is None else trace.mapped(x) for x, d in zip(leaves, dims, strict=True)]
    given = [getattr(x, "payload", None) for x in arguments]
    try:
        level = nullcontext() if mode.dual_level.get() is None else mode.activate_dual_level(None)
        with (active := mode.activate_trace(trace)), level:
            trace.key = active.key
            flat, shape = flatten(func(*unflatten(structure, arguments), **kwargs))
            written = trace.write_back(arguments, given, leaves)
            results = [trace.shown(x, written) if isinstance(x, TensorBase) else x for x in flat]
    finally:
        trace.close()
    return [(getattr(x, "value", x), getattr(x, "mapped", False), count) for x in results], shape


def _chunks(count: Any, size: int | None) -> list[tuple[Any, Any]]:
    """Where each chunk begins, and how many examples it has."""
    if size is None or int(count) <= size:
        return [(0, count)]
    return [(first, min(size, int(count) - first)) for first in range(0, int(count), size)]


def _joined(parts: Sequence[tuple[list[Any], Any]], out_dims: Any) -> Any:
    """Results of all chunks together."""
    _, shape = parts[0]
    if type(out_dims) is not int and not all(d is None or type(d) is int for d in flatten(out_dims)[0]):
        raise ArgumentError(
            "vmap: `out_dims` must be an int, None or a python collection of ints that says where in the outputs the "
            f"vmapped dimension should appear, got {shown(out_dims)}"
        )
    if shape == LEAF and isinstance(out_dims, tuple) and len(out_dims) == 1:
        out_dims = out_dims[0]
    dims = spread_dims(out_dims, shape, "out_dims")
    out = []
    for dim, *column in zip(dims, *(flat for flat, _ in parts), strict=True):
        if dim is None:
            if any(mapped for _, mapped, _ in column):
                raise ArgumentError(
                    "vmap: can not return a BatchedTensor when out_dim is None: the result differs between examples"
                )
            out.append(column[0][0])
            continue
        _require_tensor(column[0][0])
        values = [x if mapped else expand_(x, new_shape=(n, *x.shape)) for x, mapped, n in column]
        y = values[0] if len(values) == 1 else cat(values, 0)
        if not -y.ndim <= dim < y.ndim:
            raise IndexRangeError(
                f"vmap: Dimension out of range (expected to be in range of [{-y.ndim}, {y.ndim - 1}], but got "
                f"out_dim={shown(dim)})"
            )
        out.append(_put_at(y, dim) if dim else y)
    return unflatten(shape, out)


def _put_at(y: Any, dim: int) -> Any:
    from common.transforms.batching.batch_operands import at

    return at(y, dim % y.ndim)


def _require_tensor(x: Any) -> None:
    """Refuse a result that is no tensor, and so has no dimension for the examples."""
    if not isinstance(x, TensorBase):
        raise ArgumentError(
            f"vmap: the function must only return Tensors, got type {type(x)} as a return. Where out_dims is None, it "
            "may return anything that all examples share"
        )


def _count(leaves: Sequence[Any], dims: Sequence[Any]) -> Any:
    """The number of examples."""
    sizes = []
    for x, dim in zip(leaves, dims, strict=True):
        if dim is None:
            continue
        number = getattr(getattr(getattr(x, "payload", None), "spec", None), "weak", False)  # in a trace
        if number or not isinstance(x, TensorBase):
            kind = {"f": float, "b": bool}.get(x.dtype.kind, int) if number else type(x)
            kind = next((k for k in (bool, int, float) if issubclass(kind, k)), kind)
            raise ArgumentError(f"vmap: Got in_dim={shown(dim)} for an input but the input is of type {kind.__name__}")
        if not -x.ndim <= dim < x.ndim:
            raise ArgumentError(
                f"vmap: Got in_dim={shown(dim)} for some input, but that input is a Tensor of dimensionality {x.ndim} "
                f"so expected in_dim to satisfy -{x.ndim} <= in_dim < {x.ndim}."
            )
        sizes.append(x.shape[dim])
    if not sizes:
        raise ArgumentError("vmap: at least one Tensor must be mapped over; this call has in_dim=None for all inputs")
    if any(n != sizes[0] for n in sizes):
        raise ShapeError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{[int(n) for n in sizes]} for the mapped dimension"
        )
    return sizes[0]


__all__ = ["chunk_vmap", "vmap"]
