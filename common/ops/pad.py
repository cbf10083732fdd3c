"""Placing parts into a larger result: the transposes of slicing, and joining."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from common.aliases import accept_numpy_names
from common.arguments import integer
from common.dim import same
from common.dtypes import promote
from common.errors import ArgumentError, ShapeError
from common.op import NativeCall
from common.ops._define import kernel
from common.ops._samples import join, one, parts
from common.shapes import contiguous_strides
from common.spec import Spec, numel


def _unslice_native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
    from common.kernels import copying

    (g,), (out,) = specs, outs
    strides = contiguous_strides(out.shape)
    offset = sum_products(attrs["starts"], strides)
    steps = tuple(a * b for a, b in zip(attrs["steps"], strides, strict=True))
    zero = copying.value_bits(0, out.dtype)
    place = copying.copy_args(g.shape, out_offset=offset, out_strides=steps)
    return [
        NativeCall(copying.fill_source(out.dtype), "fill", (numel(out.shape), zero), (1,)),
        NativeCall(copying.copy_source(g.dtype), "copy", place, (0, 1)),
    ]


def _unslice_oracle(g: np.ndarray, shape: Any, starts: Any, steps: Any) -> np.ndarray:
    out = np.zeros(shape, g.dtype)
    place = tuple(slice(a, a + n * s, s) for a, n, s in zip(starts, g.shape, steps, strict=True))
    out[place] = g
    return out


def _unslice_rule(g: Any, g_shape: Any, starts: Any, steps: Any) -> Any:
    from common.ops.view import slice_

    return slice_(g, starts=starts, sizes=g_shape, steps=steps)


def sum_products(a: Sequence[Any], b: Sequence[Any]) -> Any:
    """The inner product of two tuples of sizes."""
    total: Any = 0
    for m, n in zip(a, b, strict=True):
        total = total + m * n
    return total


unslice = kernel(
    "unslice", ("x",), lambda x, *, shape, starts, steps: Spec(tuple(shape), x.dtype), _unslice_native,
    _unslice_oracle,
    (lambda g, x_shape, starts, steps: _unslice_rule(g, x_shape, starts, steps),),
    samples=join(one(3, 4, shape=(5, 8), starts=(1, 0), steps=(1, 2)), one(2, shape=(2,), starts=(0,), steps=(1,))),
    doc="x placed at start, start + step, ... of zeros of a shape; the transpose of slice.",
    attrs=("shape", "starts", "steps"), node_name="SliceScatter",
)  # fmt: skip


MOST_OPERANDS = 32
"""Operands of one `cat` op; more are joined in groups first."""


class _Cat:
    """`cat` for one number of operands; ops have a fixed number of operands, so there is one op per number."""

    made: dict[int, Any] = {}


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
    from common.kernels import copying

    dim, (out,) = attrs["dim"], outs
    strides = contiguous_strides(out.shape)
    source = copying.copy_source(out.dtype)
    calls, start = [], 0
    for position, spec in enumerate(specs):
        ints = copying.copy_args(spec.shape, out_offset=start * strides[dim], out_strides=strides)
        calls.append(NativeCall(source, "copy", ints, (position, len(specs))))
        start = start + spec.shape[dim]
    return calls


def _cat_op(count: int) -> Any:
    if count not in _Cat.made:
        rules = [_cat_rule(i) for i in range(count)]
        names = tuple(f"x{i}" for i in range(count))
        _Cat.made[count] = kernel(
            f"cat{count}", names, _cat_spec, _cat_native, lambda *xs, dim: np.concatenate(xs, dim), rules,
            doc="Operands one after the other along a dimension. The gradient is sliced apart.", attrs=("dim",),
            samples=parts(count), node_name="Cat",
        )  # fmt: skip
    return _Cat.made[count]


def _cat_rule(position: int) -> Any:
    names = [f"x{i}_shape" for i in range(position + 1)]
    scope = {"part": _cat_part}
    return eval(f"lambda g, dim, {', '.join(names)}: part(g, dim, ({', '.join(names)},))", scope)


def _cat_part(g: Any, dim: int, shapes: tuple[Any, ...]) -> Any:
    from common.ops.view import narrow

    start: Any = 0
    for shape in shapes[:-1]:
        start = start + shape[dim]
    return narrow(g, dim, start, shapes[-1][dim])


@accept_numpy_names
def cat(tensors: Sequence[Any], dim: int = 0) -> Any:
    """Tensors one after the other along `dim`.

    Parameters
    ----------
    tensors : sequence of (..., n_i, ...), equal in the other sizes; dtypes are promoted.
    dim : the dimension.

    Raises
    ------
    ArgumentError : no tensors.
    ShapeError : sizes differ in another dimension.
    """
    from common.ops.cast import to
    from common.ops.reduce import normalize_dim

    parts = list(tensors)
    if not parts:
        raise ArgumentError("cat(): expected a non-empty list of Tensors")
    if parts[0].ndim == 0:
        raise ShapeError("zero-dimensional tensor (at position 0) cannot be concatenated")
    axis = normalize_dim(dim, parts[0].ndim, "cat")
    for part in parts:
        if part.ndim != parts[0].ndim:
            raise ShapeError(f"cat(): tensors must have the same number of dimensions: {parts[0].ndim}, {part.ndim}")
    dtype = parts[0].dtype
    for part in parts:
        dtype = promote(dtype, part.dtype)
    parts = [p if p.dtype == dtype else to(p, dtype=dtype, x_dtype=p.dtype) for p in parts]
    while len(parts) > MOST_OPERANDS:  # an op's rule of operand i names i shapes
        groups = [parts[i : i + MOST_OPERANDS] for i in range(0, len(parts), MOST_OPERANDS)]
        parts = [group[0] if len(group) == 1 else _cat_op(len(group))(*group, dim=axis) for group in groups]
    return _cat_op(len(parts))(*parts, dim=axis)


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
    from common.ops.view import unsqueeze

    dim = integer(dim, "stack", "dim")
    if not tensors:
        raise ArgumentError("stack(): expects a non-empty TensorList")
    return cat([unsqueeze(x, dim) for x in tensors], dim if dim >= 0 else dim % (tensors[0].ndim + 1))


__all__ = ["cat", "stack"]
