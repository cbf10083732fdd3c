"""Indices that are data: gather and scatter, rows of tables, one element per row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from common.core.dispatch import called
from common.core.dtypes import int64
from common.core.errors import DTypeError, IndexRangeError, ShapeError
from common.core.int_arguments import flag, normalize_dim
from common.core.op import IndexUse, NativeCall, Op
from common.core.sizes import same
from common.core.spec import Spec, around, numel
from common.ops._define import kernel
from common.ops._samples import indexed, join
from common.ops.shape._targets import out_of_range, refuse_unless_equal


def row(x: Any) -> Any:
    """A 0-d tensor as a row of one element, which is what PyTorch's indexing functions take it for; others as is."""
    from common.ops.shape.view import reshape

    return reshape(x, 1) if getattr(x, "ndim", None) == 0 else x


def of_rank(index: Any, x: Any) -> Any:
    """An index in the rank of `x` where PyTorch overlooks the rank: without elements, or one number for a vector."""
    from common.ops.shape.view import reshape

    if index.ndim == 0 and x.ndim == 1:
        return row(index)
    if index.ndim == x.ndim or not any(isinstance(n, int) and n == 0 for n in index.shape):
        return index
    return reshape(index, (0,) * x.ndim)


def require_index(op: str, index: Any) -> None:
    """Refuse what is not int64 or int32.

    Raises
    ------
    DTypeError : it is not.
    """
    if index.dtype.kind not in "iu" or index.dtype.itemsize < 4:
        raise DTypeError(f"{op}(): Expected dtype int32/int64 for index, got {index.dtype}")


def whole_index(op: str, index: Any) -> Any:
    """An index of any integers as int64 or int32.

    Raises
    ------
    DTypeError : they are none.
    """
    if index.dtype.kind in "iu" and index.dtype.itemsize < 4:
        from common.ops.math.cast import converted

        return converted(index, int64)
    require_index(op, index)
    return index


def _gather_spec(x: Spec, index: Spec, *, dim: int) -> Spec:
    refuse_unless_equal("gather", x.shape, index.shape, dim)
    return Spec(index.shape, x.dtype)


def _scatter_spec(g: Spec, index: Spec, *, extent: Any, dim: int) -> Spec:
    refuse_unless_equal("scatter_add", g.shape, index.shape)
    return Spec((*g.shape[:dim], extent, *g.shape[dim + 1 :]), g.dtype)


def _put_spec(g: Spec, index: Spec, *, extent: Any, dim: int) -> Spec:
    rank = len(index.shape)
    refuse_unless_equal("index_add", g.shape[dim : dim + rank], index.shape)
    return Spec((*g.shape[:dim], extent, *g.shape[dim + rank :]), g.dtype)


def _pick_spec(x: Spec, index: Spec) -> Spec:
    refuse_unless_equal("pick", x.shape[:-1], index.shape)
    return Spec(index.shape, x.dtype)


def _spread_spec(g: Spec, index: Spec, *, extent: Any) -> Spec:
    refuse_unless_equal("spread", g.shape, index.shape)
    return Spec((*g.shape, extent), g.dtype)


# ------------------------------------------------------------------ gather: index has the operand's rank


def _gather_native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
    from common.kernels.arrays import indexing

    x, index = specs
    outer, extent, inner = around(x.shape, attrs["dim"])
    ints = (outer, extent, inner, index.shape[attrs["dim"]])
    errors = out_of_range(extent, attrs["dim"])
    return [NativeCall(indexing.gather_source(x.dtype, index.dtype), "gather", ints, errors=errors)]


gather_ = kernel(
    "gather", ("x", "index"), _gather_spec, _gather_native,
    lambda x, index, dim: np.take_along_axis(x, index, dim),
    (lambda g, x_shape, index, dim: scatter_zeros(g, index, extent=x_shape[dim], dim=dim),),
    samples=join(indexed((4, 5), (4, 3), 5, dim=1), indexed((4, 5, 2), (6, 5, 2), 4, dim=0)),
    doc="x at index along one dimension; other sizes agree. The gradient is added up in C order of index.",
    attrs=("dim",), indexed=IndexUse(own=True),
)  # fmt: skip


def _scatter_native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
    from common.kernels.arrays import indexing

    g, index = specs
    outer, count, inner = around(g.shape, attrs["dim"])
    extent = attrs["extent"]
    source = indexing.scatter_zeros_source(g.dtype, index.dtype)
    errors = out_of_range(extent, attrs["dim"])
    return [NativeCall(source, "scatter_zeros", (outer, extent, inner, count), errors=errors)]


def _scatter_oracle(g: np.ndarray, index: np.ndarray, extent: int, dim: int) -> np.ndarray:
    out = np.zeros((*g.shape[:dim], extent, *g.shape[dim + 1 :]), g.dtype)
    for place in np.ndindex(*g.shape):
        target = (*place[:dim], index[place], *place[dim + 1 :])
        out[target] += g[place]
    return out


scatter_zeros: Op = kernel(
    "scatter_zeros", ("g", "index"), _scatter_spec, _scatter_native, _scatter_oracle,
    (lambda g, index, dim: gather_(g, index, dim=dim),),
    samples=join(indexed((4, 3), (4, 3), 5, dim=1, extent=5), indexed((6, 5, 2), (6, 5, 2), 4, dim=0, extent=4)),
    doc="Zeros with g added at index along one dimension, in C order of index: the transpose of gather.",
    attrs=("extent", "dim"), node_name="ScatterAdd", indexed=IndexUse(writes=True, own=True, join="add"),
)  # fmt: skip


def gather(x: Any, dim: int, index: Any, *, sparse_grad: bool = False) -> Any:
    """``out[i][j] = x[index[i][j]][j]`` for dim 0, and so on.

    Parameters
    ----------
    x : (...)
    dim : the dimension that `index` selects from.
    index : (...) integers, of the rank of `x`; in other dimensions not larger.
    sparse_grad : accepted; gradients are dense.

    Returns
    -------
    tensor : of the shape of `index`.

    Raises
    ------
    IndexRangeError : an index outside the dimension; negative indices are outside.
    DTypeError : `index` is not int64 or int32.
    ShapeError : the ranks differ, or index is larger than x in another dimension.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.gather(tw.tensor([[1.0, 2.0], [3.0, 4.0]]), 1, tw.tensor([[1], [0]]))
    tensor([[2.],
            [3.]])
    """
    flag(sparse_grad, "gather", "sparse_grad")
    index = whole_index("gather", index)
    axis = normalize_dim(dim, x.ndim, "gather")
    if x.ndim == 0 or (x.ndim == 1 and index.ndim == 0):
        from common.ops.shape.view import reshape

        return called(reshape(gather(row(x), 0, row(index)), index.shape), "GatherBackward0")
    if x.ndim != index.ndim:
        if not any(n == 0 for n in index.shape):
            raise ShapeError("Index tensor must have the same number of dimensions as input tensor")
        from common.ops.shape.slices import narrow
        from common.ops.shape.view import reshape

        return called(reshape(narrow(reshape(x, -1), 0, 0, 0), index.shape), "GatherBackward0")
    for d, (n, limit) in enumerate(zip(index.shape, x.shape)):
        if d != axis and not same(n, limit) and n != limit:
            from common.ops.shape.slices import narrow

            if n > limit:
                raise ShapeError(
                    f"gather(): Size does not match at dimension {d} expected index {list(index.shape)} to be no "
                    f"larger than self {list(x.shape)} apart from dimension {axis}"
                )
            x = narrow(x, d, 0, n)
    return gather_(x, index, dim=axis)


def scatter_add(x: Any, dim: int, index: Any, src: Any) -> Any:
    """`x` with the elements of `src` added at `index` along `dim`; sums of equal indices are taken first.

    Parameters
    ----------
    x : (...)
    dim : the dimension that `index` selects from.
    index : (...) int64 or int32, of the rank of `x`; in other dimensions not larger.
    src : (...), not smaller than `index`, of the dtype of `x`. Bools are added as logical or.

    Raises
    ------
    IndexRangeError : an index outside the dimension.
    DTypeError : `index` is not int64 or int32, or src has another dtype than x.
    ShapeError : the ranks differ, unless `index` is empty, or `index` is larger than `x` or `src`.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.scatter_add(tw.zeros(3), 0, tw.tensor([0, 2, 2]), tw.ones(3))
    tensor([1., 0., 2.])
    """
    from common.ops.index.written_values import same_dtype
    from common.ops.math.cast import to
    from common.ops.math.compare import logical_or, ne
    from common.ops.shape.slices import narrow
    from common.ops.shape.view import reshape

    require_index("scatter_add", index)
    axis = normalize_dim(dim, x.ndim, "scatter_add")
    if x.ndim == 0:
        return reshape(scatter_add(row(x), 0, row(index), row(src)), ())
    index = of_rank(index, x)
    for name, other in (("self", x), ("src", src)):
        if index.ndim != other.ndim:
            raise ShapeError(
                f"scatter_add(): Index tensor must have the same number of dimensions as {name} tensor, got "
                f"{index.ndim} and {other.ndim}"
            )
    for d, (n, own, most) in enumerate(zip(index.shape, src.shape, x.shape, strict=True)):
        if (not same(n, own) and n > own) or (d != axis and not same(n, most) and n > most):
            raise ShapeError(
                f"scatter_add(): expected index {list(index.shape)} to be no larger than self {list(x.shape)} apart "
                f"from dimension {axis} and to be no larger than src {list(src.shape)}"
            )
        src = src if same(n, own) or n == own else narrow(src, d, 0, n)
    same_dtype("scatter_add", x, src)
    if x.dtype.kind == "b":
        counts = _sums(to(src, dtype=int64, x_dtype=src.dtype), index, x.shape, axis)
        return logical_or(x, ne(counts, 0))
    return x + _sums(src, index, x.shape, axis)


def _sums(src: Any, index: Any, shape: tuple[Any, ...], dim: int) -> Any:
    """Zeros of a shape with `src` added; where `index` has fewer elements than the shape, the rest stays zero."""
    from common.ops.shape.slices import unslice

    total = scatter_zeros(src, index, extent=shape[dim], dim=dim)
    if all(same(m, n) or m == n for m, n in zip(total.shape, shape, strict=True)):
        return total
    return unslice(total, shape=shape, starts=(0,) * len(shape), sizes=total.shape, steps=(1,) * len(shape))


# ------------------------------------------------------------------ rows of a table


def _take_native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
    from common.kernels.arrays import indexing
    from common.kernels.arrays.shared_parts import WHOLE

    x, index = specs
    outer, extent, inner = around(x.shape, attrs["dim"])
    source = indexing.take_source(x.dtype, index.dtype)
    ints = (outer, extent, inner, numel(index.shape), WHOLE)
    return [NativeCall(source, "take", ints, errors=out_of_range(extent, attrs["dim"]))]


take_ = kernel(
    "index_select", ("x", "index"),
    lambda x, index, *, dim: Spec((*x.shape[:dim], *index.shape, *x.shape[dim + 1 :]), x.dtype), _take_native,
    lambda x, index, dim: np.take(x, index, dim),
    (lambda g, x_shape, index, dim: put_zeros(g, index, extent=x_shape[dim], dim=dim),),
    samples=join(indexed((4, 5), (7,), 4, dim=0), indexed((4, 5), (2, 3), 5, dim=1)),
    doc="Slices of x at index along one dimension. The gradient is added up in the order of index.", attrs=("dim",),
    indexed=IndexUse(),
)  # fmt: skip


def _put_native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
    from common.kernels.arrays import indexing

    g, index = specs
    outer, extent, inner = around(outs[0].shape, attrs["dim"])
    source = indexing.put_zeros_source(g.dtype, index.dtype)
    ints = (outer, extent, inner, numel(index.shape))
    return [NativeCall(source, "put_zeros", ints, errors=out_of_range(extent, attrs["dim"]))]


def _put_oracle(g: np.ndarray, index: np.ndarray, extent: int, dim: int) -> np.ndarray:
    out = np.zeros((*g.shape[:dim], extent, *g.shape[dim + index.ndim :]), g.dtype)
    parts = g.reshape(*g.shape[:dim], -1, *g.shape[dim + index.ndim :])
    lead: tuple[Any, ...] = (slice(None),) * dim
    for j, i in enumerate(index.ravel()):
        out[(*lead, i)] += parts[(*lead, j)]
    return out


put_zeros: Op = kernel(
    "put_zeros", ("g", "index"), _put_spec, _put_native, _put_oracle,
    (lambda g, index, dim: take_(g, index, dim=dim),),
    samples=join(indexed((7, 5), (7,), 4, dim=0, extent=4), indexed((4, 2, 3), (2, 3), 5, dim=1, extent=5)),
    doc="Zeros with slices of g added at index along one dimension, in the order of index.", attrs=("extent", "dim"),
    node_name="IndexAdd", indexed=IndexUse(writes=True, join="add"),
)  # fmt: skip


def index_select(x: Any, dim: int, index: Any) -> Any:
    """Slices of `x` along `dim` at a 1-D `index`.

    Parameters
    ----------
    x : (..., n, ...)
    dim : the dimension.
    index : (k,) integers; 0-d counts as (1,).

    Returns
    -------
    tensor : (..., k, ...).

    Raises
    ------
    IndexRangeError : an index outside the dimension; negative indices are outside.
    DTypeError : `index` is not int64 or int32.
    ShapeError : index is not 1-D.
    """
    from common.core.unbroadcast import reshaped

    index = whole_index("index_select", index)
    index = row(index)
    if x.ndim == 0:
        if index.ndim != 1 or index.shape[0] != 1:
            raise IndexRangeError(
                f"index_select(): Index to scalar can have only 1 value, got shape {tuple(index.shape)}"
            )
        return reshaped(index_select(row(x), dim, index), (), "IndexSelectBackward0")
    if index.ndim != 1:
        raise ShapeError(f"index_select(): Index is supposed to be a vector, got shape {tuple(index.shape)}")
    return take_(x, index, dim=normalize_dim(dim, x.ndim, "index_select"))


# ------------------------------------------------------------------ one element per row


def _pick_native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
    from common.kernels.arrays import indexing

    x, index = specs
    ints = (numel(index.shape), x.shape[-1])
    errors = out_of_range(x.shape[-1], len(x.shape) - 1)
    return [NativeCall(indexing.pick_source(x.dtype, index.dtype), "pick", ints, errors=errors)]


pick = kernel(
    "pick", ("x", "index"), _pick_spec, _pick_native,
    lambda x, index: np.take_along_axis(x, index[..., None], -1)[..., 0],
    (lambda g, x_shape, index: spread(g, index, extent=x_shape[-1]),),
    samples=join(indexed((6, 5), (6,), 5), indexed((5,), (), 5)),
    doc="The element at index of each row of x (..., n). The gradient is `spread`.", node_name="Gather",
    indexed=IndexUse(one=True),
)  # fmt: skip


def _spread_native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
    from common.kernels.arrays import indexing

    g, index = specs
    ints = (numel(index.shape), attrs["extent"])
    source = indexing.spread_source(g.dtype, index.dtype)
    return [NativeCall(source, "spread", ints, errors=out_of_range(attrs["extent"], len(g.shape)))]


def _spread_oracle(g: np.ndarray, index: np.ndarray, extent: int) -> np.ndarray:
    out = np.zeros((*g.shape, extent), g.dtype)
    np.put_along_axis(out, index[..., None], g[..., None], -1)
    return out


spread: Op = kernel(
    "spread", ("g", "index"), _spread_spec, _spread_native, _spread_oracle,
    (lambda g, index: pick(g, index),),
    samples=join(indexed((6,), (6,), 5, extent=5), indexed((), (), 5, extent=5)),
    doc="Rows of zeros with g at index: the transpose of `pick`.", attrs=("extent",), node_name="Scatter",
    indexed=IndexUse(writes=True, one=True),
)  # fmt: skip


__all__ = ["gather", "index_select", "scatter_add"]
