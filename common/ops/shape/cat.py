"""Joining tensors along a dimension."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from common.core.aliases import accept_numpy_names
from common.core.dtypes import promote
from common.core.errors import ArgumentError, IndexRangeError, ShapeError
from common.core.int_arguments import integer
from common.core.locks import make_lock
from common.core.op import NativeCall, Op
from common.core.shapes import contiguous_strides
from common.core.sizes import same, same_shape
from common.core.spec import Spec
from common.ops._define import kernel
from common.ops._samples import alike, parts

MOST_OPERANDS = 32
"""Operands of one `cat` op; more are joined in groups first."""


_made: dict[tuple[str, int], Op] = {}
_lock = make_lock()


def op_of(name: str, count: int) -> Op:
    """`cat` or `stack` of a number of operands: an op has a fixed number of them."""
    with _lock:
        if (name, count) not in _made:
            spec, native, oracle, rule, samples, way, doc = _KINDS[name]
            _made[name, count] = kernel(
                f"{name}{count}", tuple(f"x{i}" for i in range(count)), spec, native, oracle,
                [rule(i) for i in range(count)], doc=doc, attrs=("dim",), samples=samples(count),
                node_name=name.capitalize(), parts=way,
            )  # fmt: skip
    return _made[name, count]


def stack_of(count: int) -> Op:
    """The op that stacks so many operands, at most `MOST_OPERANDS`."""
    return op_of("stack", count)


def _cat_spec(*specs: Spec, dim: int) -> Spec:
    first = specs[0]
    total: Any = 0
    for spec in specs:
        for axis, (m, n) in enumerate(zip(first.shape, spec.shape, strict=True)):
            if axis != dim and not same(m, n) and m != n:
                raise ShapeError(
                    f"cat(): Sizes of tensors must match except in dimension {dim}. Expected {m} but got {n} in "
                    f"dimension {axis}"
                )
        total = total + spec.shape[dim]
    return Spec((*first.shape[:dim], total, *first.shape[dim + 1 :]), first.dtype)


def _cat_native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
    return _pieces([spec.shape for spec in specs], outs[0], attrs["dim"])


def _pieces(shapes: Sequence[Any], out: Spec, dim: int) -> list[NativeCall]:
    """A copy per operand, to its place."""
    from common.kernels.arrays import copying

    strides = contiguous_strides(out.shape)
    calls, start = [], 0
    for position, shape in enumerate(shapes):
        calls.append(copying.scatter(out.dtype, shape, start * strides[dim], strides, (position, len(shapes))))
        start = start + shape[dim]
    return calls


def _cat_rule(position: int) -> Any:
    names = [f"x{i}_shape" for i in range(position + 1)]
    scope = {"part": _cat_part}
    return eval(f"lambda g, dim, {', '.join(names)}: part(g, dim, ({', '.join(names)},))", scope)


def _cat_part(g: Any, dim: int, shapes: tuple[Any, ...]) -> Any:
    from common.ops.shape.slices import narrow

    start: Any = 0
    for shape in shapes[:-1]:
        start = start + shape[dim]
    return narrow(g, dim, start, shapes[-1][dim])


def _stack_spec(*specs: Spec, dim: int) -> Spec:
    first = specs[0]
    for position, spec in enumerate(specs):
        if not same_shape(first.shape, spec.shape) and tuple(first.shape) != tuple(spec.shape):
            raise ShapeError(
                f"stack(): expects each tensor to be equal size, but got {list(first.shape)} at entry 0 and "
                f"{list(spec.shape)} at entry {position}"
            )
    return Spec((*first.shape[:dim], len(specs), *first.shape[dim:]), first.dtype)


def _stack_native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
    dim = attrs["dim"]
    return _pieces([(*spec.shape[:dim], 1, *spec.shape[dim:]) for spec in specs], outs[0], dim)


def _stack_rule(position: int) -> Any:
    return lambda g, dim: _stack_part(g, dim, position)


def _stack_part(g: Any, dim: int, position: int) -> Any:
    from common.ops.shape.slices import select

    return select(g, dim, position)


_KINDS: dict[str, tuple[Any, ...]] = {
    "cat": (_cat_spec, _cat_native, lambda *xs, dim: np.concatenate(xs, dim), _cat_rule, parts, "join",
            "Operands one after the other along a dimension. The gradient is sliced apart."),
    "stack": (_stack_spec, _stack_native, lambda *xs, dim: np.stack(xs, dim), _stack_rule, alike, "stack up",
              "Operands of one shape along a new dimension. The gradient is taken apart."),
}  # fmt: skip


def _promoted(tensors: Sequence[Any]) -> list[Any]:
    """All in the dtype to which they promote."""
    from common.ops.math.cast import to

    dtypes = {x.dtype for x in tensors}
    if len(dtypes) == 1:
        return list(tensors)
    dtype = reduce(promote, dtypes)
    return [x if x.dtype == dtype else to(x, dtype=dtype, x_dtype=x.dtype) for x in tensors]


def _empty_vector(x: Any) -> bool:
    """Whether a part is a vector without elements; in a trace where the others are none this may be a guard."""
    return x.ndim == 1 and bool(x.shape[0] == 0)


@accept_numpy_names
def cat(tensors: Sequence[Any], dim: int = 0) -> Any:
    """Tensors one after the other along `dim`.

    Parameters
    ----------
    tensors : sequence of (..., n_i, ...), equal in the other sizes; dtypes are promoted. A vector without elements
        goes with any shape.
    dim : the dimension.

    Raises
    ------
    ArgumentError : no tensors.
    ShapeError : sizes differ in another dimension.
    """
    from common.core.int_arguments import normalize_dim
    from common.ops.shape.view import reshape

    parts = list(tensors)
    if not parts:
        raise ArgumentError("cat(): expected a non-empty list of Tensors")
    for position, part in enumerate(parts):
        if part.ndim == 0:
            raise ShapeError(f"zero-dimensional tensor (at position {position}) cannot be concatenated")
    alike = len({part.ndim for part in parts}) == 1
    first = parts[0] if alike else next(part for part in parts if not _empty_vector(part))
    empty = alike and first.ndim == 1 and dim not in (0, -1) and all(map(_empty_vector, parts))
    axis = 0 if empty else normalize_dim(dim, first.ndim, "cat")
    for position, part in enumerate(parts):
        if part.ndim != first.ndim:
            if not _empty_vector(part):
                raise ShapeError(f"Tensors must have same number of dimensions: got {first.ndim} and {part.ndim}")
            parts[position] = reshape(part, (*first.shape[:axis], 0, *first.shape[axis + 1 :]))
    parts = _promoted(parts)
    while len(parts) > MOST_OPERANDS:  # an op's rule of operand i names i shapes
        groups = [parts[i : i + MOST_OPERANDS] for i in range(0, len(parts), MOST_OPERANDS)]
        parts = [group[0] if len(group) == 1 else op_of("cat", len(group))(*group, dim=axis) for group in groups]
    return op_of("cat", len(parts))(*parts, dim=axis)


@accept_numpy_names
def stack(tensors: Sequence[Any], dim: int = 0) -> Any:
    """Tensors of one shape along a new dimension `dim`.

    Parameters
    ----------
    tensors : sequence of (...), of one shape; dtypes are promoted.
    dim : where the new dimension will stand.

    Raises
    ------
    ShapeError : shapes differ.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.stack([tw.zeros(2), tw.ones(2)])
    tensor([[0., 0.],
            [1., 1.]])
    """
    dim = integer(dim, "stack", "dim")
    if not tensors:
        raise ArgumentError("stack(): expects a non-empty TensorList")
    xs = _promoted(list(tensors))
    ndim = xs[0].ndim
    if not -ndim - 1 <= dim <= ndim:
        raise IndexRangeError(
            f"Dimension out of range (expected to be in range of [{-ndim - 1}, {ndim}], but got {dim})"
        )
    axis = dim % (ndim + 1)
    if len(xs) > MOST_OPERANDS:
        _stack_spec(*(Spec(x.shape, x.dtype) for x in xs), dim=axis)
    groups = [xs[i : i + MOST_OPERANDS] for i in range(0, len(xs), MOST_OPERANDS)]
    stacks = [op_of("stack", len(group))(*group, dim=axis) for group in groups]
    return stacks[0] if len(stacks) == 1 else cat(stacks, axis)


__all__ = ["cat", "stack"]
