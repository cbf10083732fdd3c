"""Order: stable sorts, the k first, and places in sorted rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from common.core.aliases import accept_numpy_names
from common.core.dispatch import called
from common.core.dtypes import float32, int32, int64, promote, refuse
from common.core.errors import ArgumentError, EmptyError, ShapeError
from common.core.int_arguments import flag, integer, normalize_dim
from common.core.op import REGISTRY, NativeCall, Op
from common.core.return_types import values_and_indices
from common.core.sizes import same
from common.core.spec import Spec, numel
from common.ops._define import kernel
from common.ops._samples import Samples, away_from_zero, one
from common.ops.index.gather import gather_
from common.ops.index.taken import taken
from common.ops.index.written_values import of_dtype
from common.ops.math.cast import clone, to
from common.ops.shape.slices import narrow, select
from common.ops.shape.view import reshape, transpose
from common.tensor.create import lift


def _oracle_order(x: np.ndarray, descending: bool) -> np.ndarray:
    """Positions of the stable order, one row at a time in plain Python."""
    rows = x.reshape(-1, x.shape[-1]) if x.size else x.reshape(-1, 0)
    sign = -1 if descending else 1
    keys = [[(sign * (v != v), 0.0 if v != v else sign * v) for v in row.tolist()] for row in rows]
    order = [sorted(range(len(row)), key=row.__getitem__) for row in keys]
    return np.array(order, np.int64).reshape(x.shape)


def _argsort_native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
    from common.kernels.arrays import sorting

    (x,) = specs
    ints = (numel(x.shape[:-1]), x.shape[-1], -int(attrs["descending"]))
    scratch = sorting.argsort_scratch(x.dtype, x.shape[-1])
    return [NativeCall(sorting.argsort_source(x.dtype), "argsort", ints, scratch=scratch)]


argsort_: Op = kernel(
    "argsort", ("x",), lambda x, *, descending: Spec(x.shape, np.dtype(np.int64)), _argsort_native,
    lambda x, descending: _oracle_order(x, descending),
    samples=lambda rng, dtype: [*one(4, 5, descending=False)(rng, dtype), *one(90, descending=True)(rng, dtype)],
    doc="Positions that put each row in order, equal elements in their order; nan is above everything.",
    attrs=("descending",),
)  # fmt: skip


def _top_spec(x: Spec, *, k: int, largest: bool, in_order: bool) -> Spec:
    if x.shape[-1] < k:
        raise ShapeError(f"topk(): k = {k} is more than the {x.shape[-1]} elements of the dimension")
    return Spec((*x.shape[:-1], k), np.dtype(np.int64))


def _top_native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
    from common.kernels.arrays import sorting

    (x,) = specs
    ints = (numel(x.shape[:-1]), x.shape[-1], -int(attrs["largest"]), attrs["k"], int(attrs["in_order"]))
    scratch = sorting.top_scratch(x.dtype, x.shape[-1])
    return [NativeCall(sorting.top_source(x.dtype), "top", ints, scratch=scratch)]


def _top_oracle(x: np.ndarray, k: int, largest: bool, in_order: bool) -> np.ndarray:
    first = _oracle_order(x, largest)[..., :k]
    return first if in_order else np.sort(first, -1)


top_: Op = kernel(
    "top", ("x",), _top_spec, _top_native, _top_oracle,
    samples=lambda rng, dtype: [
        *one(4, 5, k=2, largest=True, in_order=False)(rng, dtype),
        *one(90, k=90, largest=False, in_order=False)(rng, dtype),
    ],
    doc="Positions of the k first of each row in (stable) order: ascending ones, which `topk` sorts, or few in order.",
    attrs=("k", "largest", "in_order"),
)  # fmt: skip


def _places_spec(x: Spec, v: Spec, *, right: bool) -> Spec:
    return Spec(v.shape, np.dtype(np.int64))


def _places_native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
    from common.kernels.arrays import sorting

    x, v = specs
    whole = len(x.shape) == 1
    rows, count = (1, numel(v.shape)) if whole else (numel(v.shape[:-1]), v.shape[-1])
    ints = (rows, x.shape[-1], count, int(not whole), int(attrs["right"]))
    return [NativeCall(sorting.searchsorted_source(x.dtype), "searchsorted", ints)]


def _places_oracle(x: np.ndarray, v: np.ndarray, right: bool) -> np.ndarray:
    out = np.empty(v.shape, np.int64)
    for place in np.ndindex(*v.shape):
        row = x if x.ndim == 1 else x[place[:-1]]
        out[place] = np.searchsorted(row, v[place], "right" if right else "left")
    return out


def _sorted_rows(*lead: int, right: bool) -> Samples:
    def samples(rng: np.random.Generator, dtype: Any) -> list[Any]:
        x = np.sort(away_from_zero(rng, (*lead, 6), dtype), -1)
        return [((x, away_from_zero(rng, (*lead, 4), dtype)), {"right": right})]

    return samples


searchsorted_: Op = kernel(
    "searchsorted", ("x", "v"), _places_spec, _places_native, _places_oracle,
    samples=lambda rng, dtype: [
        *_sorted_rows(right=False)(rng, dtype), *_sorted_rows(2, 3, right=True)(rng, dtype),
    ],
    doc="How many elements of a sorted row are below v (right: or equal to it), by binary search.",
    attrs=("right",),
)  # fmt: skip


def _along(x: Any, dim: int, name: str) -> tuple[Any, int]:
    """`x` with at least one dimension and `dim` last, and which it was."""
    axis = normalize_dim(dim, x.ndim, name)
    if x.ndim == 0:
        x = reshape(x, 1)
    return _swapped(x, axis), axis


def _swapped(x: Any, axis: int) -> Any:
    """`axis` and the last dimension exchanged."""
    return x if axis >= x.ndim - 1 else transpose(x, axis, -1)


def back_in_order(places: Any, axis: int) -> Any:
    """Positions along the last dimension along `axis`; they lie in C order, as in PyTorch: `view` takes them."""
    return places if axis >= places.ndim - 1 else REGISTRY["clone"](_swapped(places, axis))


@accept_numpy_names
def argsort(x: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """Positions that sort a tensor along `dim`; int64.

    Parameters
    ----------
    x : (...)
    dim : the dimension.
    descending : largest first.
    stable : accepted; the order is always stable: equal elements keep their order.

    Raises
    ------
    IndexRangeError : the dimension does not exist.

    Notes
    -----
    nan counts as larger than everything, both zeros as equal.
    """
    return _order(x, dim, descending, "argsort")[0]


def _order(x: Any, dim: int, descending: bool, name: str) -> tuple[Any, int]:
    rows, axis = _along(x, dim, name)
    order = back_in_order(argsort_(rows, descending=bool(descending)), axis)
    return order if x.ndim else reshape(order, ()), axis


@accept_numpy_names
def sort(x: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """A tensor in order along `dim`, and where its elements stood.

    Parameters
    ----------
    x : (...)
    dim : the dimension.
    descending : largest first.
    stable : accepted; the order is always stable: equal elements keep their order.

    Returns
    -------
    values, indices : both of the shape of `x`; gradients of the values go to the elements they came from.

    Raises
    ------
    IndexRangeError : the dimension does not exist.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.sort(tw.tensor([3.0, 1.0, 2.0]), descending=True)
    torch.return_types.sort(
    values=tensor([3., 2., 1.]),
    indices=tensor([0, 2, 1]))
    """
    return _taken("sort", x, *_order(x, dim, descending, "sort"), f"SortBackward{int(stable)}")


def _taken(name: str, x: Any, order: Any, axis: int, node_name: str) -> Any:
    values = taken(x, order, axis, True, node_name) if x.ndim else called(clone(x), node_name)
    return values_and_indices(name, values, order)


def msort(x: Any) -> Any:
    """The values of `sort` along the first dimension.

    Parameters
    ----------
    x : (n, ...)
    """
    return sort(x, 0)[0]


@accept_numpy_names
def topk(x: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """The k largest (or smallest) elements along `dim` in order, and where they stood.

    Parameters
    ----------
    x : (..., n, ...)
    k : how many, 0 <= k <= n.
    dim : the dimension.
    largest : largest first; otherwise smallest first.
    sorted : accepted; the result is always in order, the first of equal elements first.

    Returns
    -------
    values, indices : (..., k, ...); gradients of the values go to the elements they came from.

    Raises
    ------
    ShapeError : k is more than the size of the dimension, or negative.
    IndexRangeError : the dimension does not exist.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.topk(tw.tensor([3.0, 1.0, 2.0, 3.0]), 2)
    torch.return_types.topk(
    values=tensor([3., 3.]),
    indices=tensor([0, 3]))
    """
    from common.kernels.arrays.sorting import FEW

    k = integer(k, "topk", "k")
    refuse("topk", x, "b")
    rows, axis = _along(x, dim, "topk")
    if k < 0 or k > rows.shape[-1]:
        raise ShapeError(f"topk(): selected index k out of range: k = {k}, dimension {dim} has size {rows.shape[-1]}")
    few = type(k) is int and k <= FEW
    places = top_(rows, k=k, largest=bool(largest), in_order=few)
    if not few:
        order = argsort_(gather_(rows, places, dim=rows.ndim - 1), descending=bool(largest))
        places = gather_(places, order, dim=rows.ndim - 1)
    places = back_in_order(places, axis)
    if x.ndim == 0 and k == 1:
        return values_and_indices("topk", called(clone(x), "TopkBackward0"), reshape(places, ()))
    return _taken("topk", x if x.ndim else reshape(x, 1), places, axis, "TopkBackward0")


@accept_numpy_names
def kthvalue(x: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """The k-th smallest element along `dim`, and where it stood.

    Parameters
    ----------
    x : (..., n, ...)
    k : 1 <= k <= n.
    dim : the dimension.
    keepdim : leave the dimension with size 1.

    Raises
    ------
    EmptyError : a dimension of no elements.
    ShapeError : k is outside 1 ... n.
    """
    k, keepdim = integer(k, "kthvalue", "k"), flag(keepdim, "kthvalue", "keepdim")
    refuse("kthvalue", x, "b")
    axis = normalize_dim(dim, x.ndim, "kthvalue")
    n = x.shape[axis] if x.ndim else 1
    if n == 0:
        raise EmptyError(f"kthvalue(): Expected reduction dim {axis} to have non-zero size.")
    if k < 1 or k > n:
        raise ShapeError(f"kthvalue(): selected number k out of range for dimension {dim}: k = {k}, size {n}")
    _, indices = topk(x, k, dim, largest=False)
    if x.ndim == 0:
        return values_and_indices("kthvalue", called(clone(x), "KthvalueBackward0"), indices)
    index = narrow(indices, axis, k - 1, 1)
    values = taken(x, index, axis, keepdim, "KthvalueBackward0")
    return values_and_indices("kthvalue", values, REGISTRY["clone"](index if keepdim else select(index, axis, 0)))


def searchsorted(
    sorted_sequence: Any,
    input: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Any = None,
) -> Any:
    """Where elements would have to be inserted into sorted rows to keep them sorted.

    Parameters
    ----------
    sorted_sequence : (n,), or (..., n) in ascending order along the last dimension.
    input : a number or (...) for one row; (..., m) with the same leading sizes for many. Two dtypes are promoted.
    out_int32 : return int32 instead of int64.
    right : after equal elements instead of before them.
    side : "left" or "right"; another way to say `right`.
    sorter : int64 positions that sort an unsorted sequence, from `argsort`.

    Returns
    -------
    tensor : of the shape of `input`, values in 0 ... n.

    Raises
    ------
    ShapeError : leading sizes differ, or the sequence has no dimension.
    ArgumentError : another `side`, or one that contradicts `right`.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.searchsorted(tw.tensor([1.0, 3.0, 5.0]), tw.tensor([0.0, 3.0, 9.0]))
    tensor([0, 1, 3])
    """
    if side not in (None, "left", "right"):
        raise ArgumentError(f"searchsorted(): side can only be 'left' or 'right' but got {side!r}")
    if side == "left" and right:
        raise ArgumentError("searchsorted(): side and right can't be set to opposites, got side of left and right=True")
    if sorted_sequence.ndim == 0:
        raise ShapeError("searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension")
    if isinstance(input, (bool, int, float)):
        whole = sorted_sequence.dtype.kind != "f" and not isinstance(input, float)
        input = lift(np.asarray(input, int64 if whole else promote(sorted_sequence.dtype, float32)))
    common = promote(sorted_sequence.dtype, input.dtype)
    sorted_sequence, input = of_dtype(sorted_sequence, common), of_dtype(input, common)
    lead = sorted_sequence.shape[:-1]
    fits = len(lead) + 1 == input.ndim and all(same(m, n) or m == n for m, n in zip(lead, input.shape))
    if sorted_sequence.ndim > 1 and not fits:
        raise ShapeError(
            "searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor "
            f"and input value tensor must match, but got {tuple(sorted_sequence.shape)} and {tuple(input.shape)}"
        )
    if sorter is not None:
        if sorter.dtype != int64 or tuple(sorter.shape) != tuple(sorted_sequence.shape):
            raise ShapeError(
                "searchsorted(): sorter must be int64 and have the shape of the boundaries tensor, but got "
                f"{sorter.dtype} {tuple(sorter.shape)} for {tuple(sorted_sequence.shape)}"
            )
        sorted_sequence = gather_(sorted_sequence, sorter, dim=sorted_sequence.ndim - 1)
    found = searchsorted_(sorted_sequence, input, right=bool(right or side == "right"))
    return to(found, dtype=int32, x_dtype=found.dtype) if out_int32 else found


def bucketize(input: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False) -> Any:
    """The index of the bucket that each element falls into; see `searchsorted`.

    Parameters
    ----------
    input : a number or (...)
    boundaries : (n,) ascending.
    out_int32 : return int32 instead of int64.
    right : buckets are closed on the left instead of on the right.

    Raises
    ------
    ShapeError : boundaries do not have one dimension.
    """
    if boundaries.ndim != 1:
        raise ShapeError(f"bucketize(): boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


__all__ = ["argsort", "bucketize", "kthvalue", "msort", "searchsorted", "sort", "topk"]
