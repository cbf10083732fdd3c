"""`associative_scan`, with the signature of jax.lax: a scan whose function joins two elements."""

from __future__ import annotations

from typing import Any

from common.control.iterate import run_scan
from common.control.loop_arguments import Function, call, carried_on, require_functions
from common.control.structures import TreeSpec, tensors
from common.core.errors import ArgumentError, ShapeError
from common.core.int_arguments import integer, normalize_dim
from common.core.sizes import same
from common.core.tree import unflatten
from common.ops.math.cast import clone
from common.ops.shape.cat import cat
from common.ops.shape.reorder import movedim
from common.ops.shape.slices import narrow
from common.ops.shape.view import squeeze, unsqueeze


def associative_scan(fn: Function, elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """All totals of the first elements, the first two, the first three, ... by an associative function.

    The order is that of a loop: ``y[0] = x[0]``, and ``y[i] = fn(y[i - 1], x[i])``. So no association is left open, and
    one compiled program serves all lengths; JAX joins in a tree, whose rounding differs.

    Parameters
    ----------
    fn : of two trees like `elems`, whose leaves have size 1 along `axis`; returns such a tree. It must treat the places
        along `axis` alike, as in JAX, and be associative.
    elems : tree of tensors of equal size n along `axis`.
    reverse : begin at the end: ``y[n - 1] = x[n - 1]``, and ``y[i] = fn(y[i + 1], x[i])``.
    axis : the dimension.

    Returns
    -------
    tree of tensors : as `elems`.

    Raises
    ------
    ArgumentError : `fn` is no function, `axis` no int, or there are no tensors.
    ShapeError : sizes along `axis` differ.
    ArgumentError, ShapeError, DTypeError : `fn` returns another structure, other shapes or dtypes.
    IndexRangeError : a leaf does not have that dimension.

    Examples
    --------
    >>> import dynamic as tw
    >>> def joined(first, second):  # of affine functions a x + b
    ...     return first[0] * second[0], first[1] * second[0] + second[1]
    >>> tw.associative_scan(joined, (tw.tensor([2.0, 2.0, 2.0]), tw.tensor([1.0, 1.0, 1.0])))
    (tensor([2., 4., 8.]), tensor([1., 3., 7.]))
    """
    require_functions("associative_scan", fn=fn)
    rows, structure = tensors(elems, "associative_scan: elems")
    place = integer(axis, "associative_scan", "axis")
    axes = [normalize_dim(place, x.ndim, "associative_scan") if x.ndim else _refuse_numbers() for x in rows]
    if not rows:
        raise ArgumentError("associative_scan: elems has no tensors")
    sizes = [x.shape[k] for x, k in zip(rows, axes, strict=True)]
    n = sizes[0]
    if any(not same(m, n) and m != n for m in sizes):
        raise ShapeError(f"Array inputs to associative_scan must have the same size along axis {axis}. (saw: {sizes})")
    if n < 2:
        return unflatten(structure, [clone(x) for x in rows])

    last = n - 1 if reverse else 0
    first = [narrow(x, k, last, 1) for x, k in zip(rows, axes, strict=True)]
    rest = [movedim(narrow(x, k, 1 - bool(reverse), n - 1), k, 0) for x, k in zip(rows, axes, strict=True)]
    form = TreeSpec(structure, first)

    def join(before: Any, row: Any) -> tuple[Any, Any]:
        row, _ = tensors(row, "associative_scan: elems")
        x = unflatten(structure, [unsqueeze(v, k) for v, k in zip(row, axes, strict=True)])
        y = carried_on("associative_scan", fn, call("associative_scan", fn, before, x), form)
        return unflatten(structure, y), [squeeze(v, k) for v, k in zip(y, axes, strict=True)]

    _, totals = run_scan("associative_scan", join, fn, form, first, (rest, structure), n - 1, bool(reverse))
    ends = [movedim(y, 0, k) for y, k in zip(totals, axes, strict=True)]
    pairs = [(y, x) if reverse else (x, y) for x, y in zip(first, ends, strict=True)]
    return unflatten(structure, [cat(pair, k) for pair, k in zip(pairs, axes, strict=True)])


def _refuse_numbers() -> int:
    raise ShapeError("associative_scan: elems has a 0-d leaf; the scan goes through a dimension of each")
