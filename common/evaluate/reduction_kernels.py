"""Reductions, and sums of functions of elements, as kernels for operands of one form; and for any layout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from common.compiler.loop_ir import Let
from common.evaluate import kernels
from common.evaluate.kernels import Builtin
from common.evaluate.layouts import WORTH, dense, memory_order, rows_of
from common.kernels.arrays import mapped_sums, sums
from common.kernels.arrays.copying import LONG
from common.kernels.arrays.reducers import REDUCERS
from common.kernels.arrays.shared_parts import PARTS, WHOLE

_COLUMNS = 8
"""Elements behind dimensions that are summed, and lie apart, from which on these are moved together, and they stay."""


def reduced_dtype(kind: str, dtype: np.dtype) -> np.dtype:
    """The dtype in which a reduction with a result of `dtype` computes."""
    return dtype if REDUCERS[kind].columns else sums.extreme_dtype(dtype)


def reduction(
    kind: str, shape: Any, dtype: np.dtype, dims: tuple[int, ...], out_shape: Any
) -> tuple[Builtin | None, Builtin]:
    """A reduction over `dims` of arrays of one shape and dtype; several dims are flattened in C order.

    Returns
    -------
    The builtin, which declines what is not contiguous, or None; and a function of any layout.
    """
    if not dims or 0 in out_shape:
        return None, lambda x: _unreduced(kind, x, out_shape, dtype)
    first, last = dims[0], dims[-1]
    order = None
    if kind == "sum" and (parts := channels(shape, dims)) is not None:
        return sum_of_channels([Let("t0", "x0")], "f", shape, parts, dtype, out_shape)
    if last - first + 1 != len(dims):
        if not REDUCERS[kind].columns and 0 not in shape:
            return None, _one_after_the_other(kind, shape, dtype, dims, out_shape)
        behind = len(shape) if prod(shape[last + 1 :]) < _COLUMNS else last + 1  # few columns are turned into rows
        before = tuple(i for i in range(len(shape)) if i not in dims and i < behind)
        order = before + dims + tuple(range(behind, len(shape)))
        shape, first, last = tuple(shape[i] for i in order), len(before), len(before) + len(dims) - 1
    batch, rows, columns = prod(shape[:first]), prod(shape[first : last + 1]), prod(shape[last + 1 :])
    by_rows = columns == 1 or rows == 0
    name = f"{kind}_rows" if by_rows else f"{kind}_cols"
    source = sums.few_rows_source(kind, dtype, rows) if by_rows else None
    if source is not None:
        name = "few_rows"
    source = source or getattr(sums, f"{name}_source")(dtype)
    kernel = kernels.compiled(source, name)
    ints = (batch * columns, rows, WHOLE) if by_rows else (batch, rows, columns)
    in_lanes = REDUCERS[kind].columns and not by_rows
    lanes = dtype.itemsize * sums.sum_cols_scratch(rows, columns) if in_lanes else 0

    def run(x: np.ndarray) -> np.ndarray:
        if not x.flags.c_contiguous and (y := _as_it_lies(kind, x, dims, out_shape)) is not None:
            return y
        if order is not None:
            x = x.transpose(order)
        if by_rows and rows >= LONG and not x.flags.c_contiguous and x.flags.aligned:
            found = rows_of(x.shape, x.strides, x.itemsize)
            if found is not None and found[0] == rows and found[1] is not None:
                out = np.empty(out_shape, dtype)
                _rows_apart(kind, dtype)(x, out, out.size, rows, found[1], WHOLE)
                return out
        out = np.empty(out_shape, dtype)
        held = (kernels.scratch(lanes),) if lanes else ()
        kernel(dense(x), out, *held, *ints)
        return out

    if order is not None:
        return None, run
    return kernels.fixed(kernels.address(source, name), (dtype,), out_shape, dtype, ints, lanes), run


def _one_after_the_other(kind: str, shape: Any, dtype: np.dtype, dims: tuple[int, ...], out_shape: Any) -> Builtin:
    """Extremes over dimensions apart from each other, in whose bits their order is not: over the last ones first."""
    beside = next(i for i in range(len(dims) - 1, 0, -1) if dims[i - 1] + 1 != dims[i])
    between = tuple([1 if i in dims[beside:] else n for i, n in enumerate(shape)])
    _, inner = reduction(kind, shape, dtype, dims[beside:], between)
    _, outer = reduction(kind, between, dtype, dims[:beside], out_shape)

    def run(x: np.ndarray) -> np.ndarray:
        found = None if x.flags.c_contiguous else _as_it_lies(kind, x, dims, out_shape)
        return outer(inner(x)) if found is None else found

    return run


@lru_cache(maxsize=256)
def _rows_apart(kind: str, dtype: np.dtype) -> Callable[..., Any]:
    return kernels.compiled(getattr(sums, f"{kind}_rows_source")(dtype, apart=True), f"{kind}_rows_apart")


def channels(shape: Any, dims: tuple[int, ...]) -> tuple[int, int] | None:
    """Where the dimensions that a reduction over the first and the last ones leaves begin and end; None for others, and
    for one channel, whose elements lie in order.
    """
    kept = [d for d in range(len(shape)) if d not in dims]
    if not kept or kept[-1] - kept[0] + 1 != len(kept) or kept[0] == 0 or kept[-1] == len(shape) - 1 or 0 in shape:
        return None
    if prod(shape[d] for d in kept) == 1:
        return None
    return kept[0], kept[-1] + 1


def sum_of_channels(
    body: list[Let], classes: str, shape: Any, parts: tuple[int, int], dtype: np.dtype, out_shape: Any
) -> tuple[Builtin | None, Builtin]:
    """S of an expression over all dimensions but those of `parts`, see `mapped_sums.channels_source`."""
    ints = prod(shape[: parts[0]]), prod(shape[parts[0] : parts[1]]), prod(shape[parts[1] :]), WHOLE
    source = mapped_sums.channels_source(body, dtype, classes)
    held = dtype.itemsize * ints[0] * ints[2] * PARTS
    return with_scratch(source, "expression_channels", (dtype,) * len(classes), out_shape, dtype, ints, held, False)


def mapped_sum(
    element: str, shape: Any, dtype: np.dtype, out_dtype: np.dtype, dims: tuple[int, ...], out_shape: Any
) -> tuple[Builtin | None, Builtin] | None:
    """S of a function of the elements, by name in `common.kernels.arrays.mapped_sums`, as `reduction`; None where it
    needs a copy in order.
    """
    if not dims or 0 in out_shape:
        return None
    if dtype == out_dtype and (parts := channels(shape, dims)) is not None:
        body = [Let("v", "x0"), Let("m", "x1"), Let("t0", mapped_sums.ELEMENTS[element].format(dtype=dtype))]
        of_two = element in mapped_sums.OF_TWO
        body = body if of_two else [body[0], body[2]]
        return sum_of_channels(body, "fp" if of_two else "f", shape, parts, dtype, out_shape)
    if dims[-1] - dims[0] + 1 != len(dims):
        return None
    batch, rows = prod(shape[: dims[0]]), prod(shape[dims[0] : dims[-1] + 1])
    columns = prod(shape[dims[-1] + 1 :])
    by_rows = columns == 1 or rows == 0
    make, end = (mapped_sums.rows_source, "rows") if by_rows else (mapped_sums.cols_source, "cols")
    source, name = make(element, dtype, out_dtype), f"{element}_{end}"
    ints = (batch * columns, rows) if by_rows else (batch, rows, columns)
    held = out_dtype.itemsize * mapped_sums.scratch(element, rows, 0 if by_rows else columns)
    inputs = 2 if element in mapped_sums.OF_TWO else 1
    return with_scratch(source, name, (dtype,) * inputs, out_shape, out_dtype, ints, held)


def with_scratch(
    source: str,
    name: str,
    dtypes: Sequence[np.dtype],
    shape: Any,
    dtype: np.dtype,
    ints: Sequence[int],
    held: int,
    ready_made: bool = True,
) -> tuple[Builtin | None, Builtin]:
    """A kernel that uses `held` bytes of scratch, as `reduction` returns it."""
    kernel = kernels.compiled(source, name, ready_made)

    def run(*operands: np.ndarray) -> np.ndarray:
        out = np.empty(shape, dtype)
        kernel(*map(dense, operands), out, kernels.scratch(held), *ints)
        return out

    return kernels.fixed(kernels.address(source, name, ready_made), dtypes, shape, dtype, ints, held), run


def _unreduced(kind: str, x: np.ndarray, out_shape: Any, dtype: np.dtype) -> np.ndarray:
    """A reduction over no dimensions, or with an empty result; a sum of one element starts from +0."""
    return np.array((x + dtype.type(0) if REDUCERS[kind].start == 0 else x), dtype).reshape(out_shape)


def _as_it_lies(kind: str, x: np.ndarray, dims: tuple[int, ...], out_shape: Any) -> np.ndarray | None:
    """A reduction of an array that lies in another order, as it lies: over what comes in the same order, or in any
    order if no bit depends on it, as of extremes and of sums of ints. Or None.
    """
    order = memory_order(x) if x.size >= WORTH else None
    found = None if order is None else _in_order(kind, x.shape, x.dtype, dims, order)
    if order is None or found is None:
        return None
    run, back = found
    y: np.ndarray = run(x.transpose(order)).transpose(back)
    return np.ascontiguousarray(y).reshape(out_shape)


@lru_cache(maxsize=8192)
def _in_order(
    kind: str, shape: tuple[int, ...], dtype: np.dtype, dims: tuple[int, ...], order: tuple[int, ...]
) -> tuple[Callable[..., Any], list[int]] | None:
    found = [order.index(d) for d in dims]
    reduced = tuple(sorted(found))
    if found != list(reduced) and REDUCERS[kind].columns and dtype.kind == "f":
        return None
    kept = [d for d in order if d not in dims]
    run = reduction(kind, [shape[d] for d in order], dtype, reduced, tuple([shape[d] for d in kept]))[1]
    return run, np.argsort(kept).tolist()


__all__ = ["channels", "mapped_sum", "reduced_dtype", "reduction", "sum_of_channels", "with_scratch"]
