"""Views: index maps. A numpy view in one engine, folded into loop indices in the other."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np

from common.core import mode
from common.core.aliases import accept_numpy_names
from common.core.dispatch import Attrs, apply
from common.core.errors import IndexRangeError, ShapeError
from common.core.int_arguments import gathered, integer, integers
from common.core.op import Op
from common.core.shapes import contiguous_strides
from common.core.sizes import meant, same, same_shape
from common.core.spec import numel
from common.core.unbroadcast import INTS, is_tensor, known_sizes, reshaped, sum_to
from common.ops._define import view as define_view
from common.ops._samples import join, one
from common.ops.shape._targets import expansion, known_expansion, known_order, known_swap, swap
from common.ops.shape._targets import order as order_of
from common.tensor.arrays import reshaped_array

Placed = tuple[Any, tuple[Any, ...], tuple[Any, ...]]


def lies_in_order(shape: tuple[Any, ...], strides: tuple[Any, ...]) -> bool:
    """Whether strides, in elements, are those of a C-contiguous array."""
    dense = contiguous_strides(shape)
    return all(
        same(have, want) or (isinstance(n, int) and n == 1) for n, have, want in zip(shape, strides, dense, strict=True)
    )


def _reshape(offset: Any, shape: Any, strides: Any, new_shape: tuple[Any, ...]) -> Placed | None:
    if lies_in_order(shape, strides) or any(isinstance(n, int) and n == 0 for n in shape):
        return offset, new_shape, contiguous_strides(new_shape)
    steps = viewed(shape, strides, new_shape)
    return None if steps is None else (offset, new_shape, steps)


def viewed(
    shape: tuple[Any, ...],
    strides: tuple[Any, ...],
    new_shape: tuple[Any, ...],
    equal: Callable[[Any, Any], Any] = same,
) -> tuple[Any, ...] | None:
    """Strides of a view under another shape; None where it takes a copy.

    Neighbouring dimensions that lie in one another's order are one run of memory. Each run has to be cut into new
    dimensions on its own.

    Parameters
    ----------
    equal : compares two sizes; `operator.eq` lets a trace rely on what it finds.
    """
    runs: list[tuple[Any, Any]] = []  # number of elements and distance between two, innermost first
    for n, step in zip(reversed(shape), reversed(strides), strict=True):
        if isinstance(n, int) and n == 1:
            continue
        if runs and equal(step, runs[-1][0] * runs[-1][1]):
            runs[-1] = (runs[-1][0] * n, runs[-1][1])
        else:
            runs.append((n, step))
    steps: list[Any] = []
    left = list(new_shape)
    for count, distance in runs:
        covered: Any = 1
        while left and not equal(covered, count):
            n = left.pop()
            steps.append(0 if isinstance(n, int) and n == 1 else covered * distance)
            covered = covered * n
        if not equal(covered, count):
            return None
    if not all(isinstance(n, int) and n == 1 for n in left):
        return None
    return (*(0 for _ in left), *reversed(steps))


reshape_: Op = define_view(
    "reshape", _reshape, reshaped_array,
    (lambda g, x_shape: reshape_(g, new_shape=x_shape),),
    samples=join(one(3, 4, new_shape=(2, 6)), one(3, 4, new_shape=(12,)), one(new_shape=(1, 1))),
    doc="The same elements in C order under another shape; a copy only if strides do not allow a view.",
    node_name="View", form_only=True,
)  # fmt: skip

permute_: Op = define_view(
    "permute",
    lambda offset, shape, strides, dims: (offset, tuple(shape[d] for d in dims), tuple(strides[d] for d in dims)),
    lambda x, dims: x.transpose(dims),
    (lambda g, dims: permute_(g, dims=tuple(int(i) for i in np.argsort(dims))),),
    samples=join(one(2, 3, 4, dims=(2, 0, 1)), one(2, 3, dims=(1, 0))),
    doc="Dimensions in another order.", parts="turn",
)


def _expand(offset: Any, shape: Any, strides: Any, new_shape: tuple[Any, ...]) -> Placed:
    lead = len(new_shape) - len(shape)
    steps: list[Any] = [0] * lead
    for n, step, target in zip(shape, strides, new_shape[lead:], strict=True):
        steps.append(0 if isinstance(n, int) and n == 1 and not same(target, 1) else step)
    return offset, new_shape, tuple(steps)


expand_ = define_view(
    "expand", _expand, lambda x, new_shape: np.broadcast_to(x, new_shape),
    (lambda g, x_shape: sum_to(g, x_shape),),
    samples=join(one(3, 1, new_shape=(2, 3, 4)), one(new_shape=(3,))),
    doc="Sizes of 1 repeated without copying.", form_only=True,
)  # fmt: skip


def reshape(x: Any, *sizes: Any, shape: Any = None) -> Any:
    """`x` under another shape with as many elements; one size may be -1.

    Parameters
    ----------
    x : (...)
    sizes, shape : sizes, or one tuple of them.

    Raises
    ------
    ShapeError : the sizes do not multiply to the number of elements.
    """
    if shape is not None:
        sizes = gathered(sizes, shape, "reshape", "shape")
    shape = tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
    plain = not mode.tracing and INTS.issuperset(map(type, shape))
    target = (_known_target if plain else _target)(x.shape, shape)
    if not is_tensor(x) and same_shape(target, x.shape):
        return x
    if mode.tracing and (trace := mode.current_trace()) is not None and (place := _lies(x)) is not None:
        shows = partial(_shows, place, target)
        # a function is traced again for sizes that decide otherwise; a graph of open sizes decides when it is written
        if (not trace.replays or shows()) and not _reshape(*place, target):
            y = apply(reshape_, (x,), {"new_shape": target})  # whether this is a view no size shows
            trace.note_alias(y, x, shows=shows)
            return y
    return apply(reshape_, (x,), known_sizes(target) if plain else {"new_shape": target})


@lru_cache(maxsize=1024)
def _known_dims(dims: tuple[int, ...], node_name: str | None = None) -> Attrs:
    return Attrs(node_name=node_name, dims=dims)


def _target(old: tuple[Any, ...], shape: tuple[Any, ...]) -> tuple[Any, ...]:
    """The sizes that `reshape` is asked for."""
    target = _sizes(shape)
    if -1 in [n for n in target if isinstance(n, int)]:
        known = numel(tuple(n for n in target if not (isinstance(n, int) and n == -1)))
        total = numel(old)
        if target.count(-1) > 1 or known == 0 or total % known != 0:
            several = "only one dimension can be inferred, " if target.count(-1) > 1 else ""
            raise ShapeError(f"{several}shape '{list(target)}' is invalid for input of size {total}")
        target = tuple(total // known if isinstance(n, int) and n == -1 else n for n in target)
    if not same(numel(target), numel(old)) and numel(target) != numel(old):
        raise ShapeError(f"shape '{list(target)}' is invalid for input of size {numel(old)}")
    return target


_known_target = lru_cache(maxsize=4096)(_target)


def _sizes(shape: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        shape = tuple(shape[0])
    return tuple([n if type(n) is int else meant(n) for n in integers(shape, "reshape", "shape")])


def view(x: Any, *shape: Any, size: Any = None) -> Any:
    """Like `reshape`, but refuses to copy.

    Parameters
    ----------
    x : (...)
    shape, size : sizes, or one tuple of them.

    Raises
    ------
    ShapeError : the tensor's strides do not allow a view of this shape.
    """
    sizes = shape if size is None else gathered(shape, size, "view", "size")
    place = _lies(x)
    if place is not None and _as_view(place, _target(place[1], sizes)) is None:
        raise ShapeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            f"contiguous subspaces). Use .reshape(...) instead. Its shape is {tuple(x.shape)}, its strides {place[2]}."
        )
    return reshape(x, *sizes)


def _as_view(place: Placed, target: tuple[Any, ...]) -> Any:
    """Strides of what lies somewhere under another shape, None if it takes a copy; a trace relies on the answer."""
    _, shape, strides = place
    if any(isinstance(n, int) and n == 0 for n in shape):
        return contiguous_strides(target)
    found = viewed(shape, strides, target, operator.eq)
    return contiguous_strides(target) if found is None and any(n == 0 for n in shape) else found


def _shows(place: Placed, target: tuple[Any, ...]) -> bool:
    """Whether a reshape shows the same memory; a trace relies on the answer."""
    return _as_view(place, target) is not None


def _lies(x: Any) -> Placed | None:
    """Offset, shape and strides, in elements, of a tensor that is not in C order; None of any other one."""
    if isinstance(data := getattr(x, "payload", None), np.ndarray):
        return None if data.flags.c_contiguous else (0, data.shape, tuple([s // data.itemsize for s in data.strides]))
    if data is None or not mode.tracing:
        return None
    from common.ops.shape.view_scatter import path_along, placed
    from common.tensor.view_families import family_of

    family, base, steps = family_of(x)
    place = placed(base.shape, path_along(steps, base)) if steps and family is not None else None
    return None if place is None else (place[0], tuple(x.shape), place[2])


def permute(x: Any, *order: Any, dims: Any = None) -> Any:
    """Dimensions in another order.

    Parameters
    ----------
    x : (...)
    order, dims : all dimensions, in their new order, or one tuple of them.

    Raises
    ------
    ShapeError : it is not a permutation of the dimensions.
    IndexRangeError : a dimension that does not exist.
    """
    if dims is not None:
        order = gathered(order, dims, "permute", "dims")
    given = order[0] if len(order) == 1 and isinstance(order[0], (tuple, list)) else order
    plain = INTS.issuperset(map(type, given))
    known = (known_order if plain else order_of)(tuple(given), x.ndim)
    return apply(permute_, (x,), _known_dims(known))


def transpose(x: Any, dim0: int, dim1: int) -> Any:
    """`x` with two dimensions exchanged.

    Parameters
    ----------
    x : (...)
    dim0, dim1 : dimensions.

    Raises
    ------
    IndexRangeError : a dimension that does not exist.
    """
    plain = type(dim0) is int and type(dim1) is int
    dims = (known_swap if plain else swap)(x.ndim, dim0, dim1)
    return apply(permute_, (x,), _known_dims(dims, "TransposeBackward0"))


def transposed(x: Any) -> Any:
    """A matrix transposed; a vector as it is.

    Raises
    ------
    ShapeError : more than two dimensions.
    """
    ndim = len(x.shape)
    if ndim > 2:
        raise ShapeError(f"t() expects a tensor with <= 2 dimensions, but self is {ndim}D")
    return apply(permute_, (x,), _known_dims(tuple(range(ndim))[::-1], "TBackward0"))


def flatten(x: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    """Dimensions `start_dim` to `end_dim`, both included, as one.

    Parameters
    ----------
    x : (...)
    start_dim, end_dim : first and last of the dimensions.

    Raises
    ------
    ShapeError : `start_dim` comes after `end_dim`.
    IndexRangeError : a dimension that does not exist.
    """
    from common.core.int_arguments import normalize_dim

    a, b = (normalize_dim(d, x.ndim, "flatten") for d in (start_dim, end_dim))
    if x.ndim == 0:
        return reshape(x, 1)
    if a == b:
        return x
    if a > b:
        raise ShapeError("flatten() has invalid args: start_dim cannot come after end_dim")
    return reshape(x, (*x.shape[:a], numel(x.shape[a : b + 1]), *x.shape[b + 1 :]))


@accept_numpy_names
def squeeze(x: Any, dim: Any = None) -> Any:
    """`x` without the dimensions of size 1 among `dim` (all by default).

    Parameters
    ----------
    x : (...)
    dim : the dimension, or several, () being none; all by default.

    Raises
    ------
    IndexRangeError : a dimension that does not exist.
    """
    from common.core.int_arguments import normalize_dims

    several = isinstance(dim, (tuple, list))
    dims = () if several and not dim else normalize_dims(dim, x.ndim, "squeeze")
    shape = tuple([n for i, n in enumerate(x.shape) if not (i in dims and n == 1)])
    return reshaped(x, shape, f"SqueezeBackward{0 if dim is None else 1 + several}")


@accept_numpy_names
def unsqueeze(x: Any, dim: int) -> Any:
    """`x` with a dimension of size 1 inserted at `dim`.

    Parameters
    ----------
    x : (...)
    dim : where the new dimension will stand.

    Raises
    ------
    IndexRangeError : `dim` is outside [-ndim - 1, ndim].
    """
    dim = integer(dim, "unsqueeze", "dim")
    if not -x.ndim - 1 <= dim <= x.ndim:
        raise IndexRangeError(
            f"Dimension out of range (expected to be in range of [{-x.ndim - 1}, {x.ndim}], but got {dim})"
        )
    at = dim % (x.ndim + 1)
    return reshaped(x, (*x.shape[:at], 1, *x.shape[at:]), "UnsqueezeBackward0")


def expand(x: Any, *shape: Any, size: Any = None) -> Any:
    """`x` with sizes of 1 repeated to `shape`; -1 keeps a size.

    Parameters
    ----------
    x : (...)
    shape, size : sizes, or one tuple of them.

    Raises
    ------
    ShapeError : a size other than 1 would have to change.
    """
    if size is not None:
        shape = gathered(shape, size, "expand", "size")
    given = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    plain = not mode.tracing and INTS.issuperset(map(type, given))
    target = (known_expansion if plain else expansion)(x.shape, tuple(given))
    if not is_tensor(x) and same_shape(target, x.shape):
        return x
    return apply(expand_, (x,), known_sizes(target) if plain else {"new_shape": target})


def broadcast_to(x: Any, shape: Any) -> Any:
    """`x` broadcast to `shape`; the same as `expand`.

    Parameters
    ----------
    x : (...)
    shape : tuple of sizes; -1 keeps a size.

    Raises
    ------
    ShapeError : `x` does not broadcast to it.
    """
    return expand(x, integers(shape, "broadcast_to", "shape"))


__all__ = [
    "broadcast_to", "expand", "flatten", "permute", "reshape", "squeeze", "transpose", "unsqueeze", "view",
]  # fmt: skip
