"""Distances of vectors."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from common.core import mode
from common.core.errors import ArgumentError, DTypeError, ShapeError
from common.core.op import Op
from common.core.sizes import same
from common.evaluate.kernels import compiled
from common.ops._define import composite
from common.ops._samples import away_from_zero
from common.ops.create.spaced import triu_indices
from common.ops.index.gather import index_select
from common.ops.linalg._lapack import mT
from common.ops.linalg.matmul import matmul
from common.ops.math.compare import eq, where
from common.ops.reduce.norms import norm, norm_
from common.ops.reduce.reductions import sum_
from common.ops.shape.view import unsqueeze
from common.tensor.base import Tensor
from common.tensor.create import lift

_SOME, _MANY = 1 << 14, 1 << 13
"""Elements of differences from which on storing none of them pays: between two matrices, and of all pairs of rows."""


def _differences(a: Any, b: Any) -> Any:
    return unsqueeze(a, -2) - unsqueeze(b, -3)


def _quotient(zero: Any, x: Any, y: Any) -> Any:
    """x / y, and 0 where y is; the quotient that is not used is finite, for tangents."""
    return where(zero, 0, x / where(zero, 1, y))


def _are_plain(*xs: Any) -> bool:
    """Whether operands are tensors of floats of one dtype that record nothing."""
    plain = all(not x._requires_grad and type(x) is Tensor for x in xs)  # where it cannot be told, it raises
    return plain and xs[0].dtype.kind == "f" and all(x.dtype == xs[0].dtype for x in xs)


def _measured(a: Any, b: Any, p: float, pairs: bool = False) -> Any:
    """The norms of the differences of all rows without storing these, as `norm_` has them; None for other norms."""
    from common.kernels.arrays import distances

    (*lead, m, k), n, dtype = a.shape, b.shape[-2], a.dtype
    serves = distances.serves_pairs if pairs else distances.serves
    if p not in distances.ORDERS or not serves(n, k, dtype.itemsize):
        return None
    out = np.empty(n * (n - 1) // 2 if pairs else (*lead, m, n), dtype)
    held = np.empty(distances.scratch_of_distances(n, k), dtype)
    kernel = compiled(distances.distances_source(dtype, k, p, pairs), "pairs" if pairs else "distances")
    kernel(np.ascontiguousarray(a.payload), np.ascontiguousarray(b.payload), out, held, prod(lead), m, n, k)
    return lift(out)


def _weights(slope: Any, size: Any, turned: bool) -> Any:
    found = _quotient(eq(size, 0), slope, size)
    return mT(found) if turned else found


def _along(g: Any, a: Any, b: Any, turned: bool) -> Any:
    """The differences along a tangent of the slopes."""
    found = sum_(unsqueeze(g, -2) * _differences(a, b), dim=(a.ndim,), keepdim=False)
    return mT(found) if turned else found


slopes_: Op = composite(
    "slopes_of_distances",
    lambda slope, size, a, b, *, turned: sum_(
        _differences(a, b) * unsqueeze(_weights(slope, size, turned), -1), dim=(a.ndim - 1,), keepdim=False
    ),
    (lambda g, size, a, b, turned: _quotient(eq(size, 0), _along(g, a, b, turned), size),
     lambda g, slope, size, a, b, turned: _quotient(eq(size, 0), -_along(g, a, b, turned) * slope, size * size),
     lambda g, slope, size, turned: g * sum_(_weights(slope, size, turned), dim=(size.ndim - 1,), keepdim=True),
     lambda g, slope, size, turned: -matmul(mT(_weights(slope, size, turned)), g)),
    inputs=("slope", "size", "a", "b"), reduce="slopes", samples=lambda rng, dtype: [
        (tuple(away_from_zero(rng, (*lead, *s), dtype) for s in (pairs, pairs, (3, 4), (20, 4))), {"turned": turned})
        for lead in ((), (2,)) for pairs, turned in (((3, 20), False), ((20, 3), True))
    ],
    doc="The gradient of distances by a: S over j of (a_i - b_j) g_ij / y_ij, 0 where y_ij = 0; g_ji / y_ji if turned.",
)  # fmt: skip

distances_: Op = composite(
    "distances", lambda a, b: norm_(_differences(a, b), p=2.0, dim=(a.ndim,), keepdim=False),
    (lambda g, y, a, b: slopes_(g, y, a, b, turned=False),
     lambda g, y, a, b: slopes_(g, y, b, a, turned=True)),
    inputs=("a", "b"), reduce="distances", node_name="Cdist", samples=lambda rng, dtype: [
        ((away_from_zero(rng, (*lead, 3, 4), dtype), away_from_zero(rng, (*lead, 20, 4), dtype)), {})
        for lead in ((), (2,))
    ],
    doc="sqrt(S((a_i - b_j)^2)) of all pairs of rows. d/da = S over j of (a_i - b_j) g_ij / y_ij, 0 where y_ij = 0.",
)  # fmt: skip


def cdist(x1: Any, x2: Any, p: Any = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Any:
    """The distances of all pairs of rows: ``|x1[..., i, :] - x2[..., j, :]|_p``.

    Parameters
    ----------
    x1 : (..., m, k), floating point.
    x2 : (..., n, k), of the same dtype; leading sizes broadcast.
    p : of the norm, see `norm`; >= 0.
    compute_mode : accepted; distances are sums of powers of differences, never a product of matrices.

    Returns
    -------
    tensor : (..., m, n). The gradient of a distance 0 is 0.

    Raises
    ------
    ShapeError : fewer than two dimensions, or rows of different lengths.
    DTypeError : not floating point, or two dtypes.
    ArgumentError : a negative p.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.cdist(tw.tensor([[0.0, 0.0]]), tw.tensor([[3.0, 4.0], [0.0, 1.0]]))
    tensor([[5., 1.]])
    """
    if isinstance(p, str) or p < 0:
        raise ArgumentError(f"cdist only supports non-negative p values, got {p!r}")
    for x, name in ((x1, "X1"), (x2, "X2")):
        if x.ndim < 2:
            raise ShapeError(f"cdist only supports at least 2D tensors, {name} got: {x.ndim}D")
        if x.dtype.kind != "f" or x.dtype != x1.dtype:
            raise DTypeError(f"cdist only supports floating-point dtypes, {name} got: {x.dtype}")
    if not same(x1.shape[-1], x2.shape[-1]) and x1.shape[-1] != x2.shape[-1]:
        raise ShapeError(
            f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}"
        )
    # also in a trace in which sizes are equal by chance: gradients of gradients of the parts differ
    if tuple(x1.shape[:-2]) == tuple(x2.shape[:-2]):
        if p == 2:
            return distances_(x1, x2)
        if not mode.tracing and x1.shape[-1] * x2.shape[-2] * prod(x1.shape[:-1]) > _SOME and _are_plain(x1, x2):
            found = _measured(x1, x2, float(p))
            if found is not None:
                return found
    return norm(_differences(x1, x2), p, -1)


def dist(input: Any, other: Any, p: Any = 2.0) -> Any:
    """The p-norm of a difference: ``|input - other|_p`` over all elements.

    Parameters
    ----------
    input, other : (...), floating point, broadcast.
    p : of the norm, see `norm`.

    Raises
    ------
    ShapeError : the shapes do not broadcast.
    ArgumentError : p is not a number.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.dist(tw.tensor([3.0, 1.0]), tw.tensor([0.0, 5.0]))
    tensor(5.)
    """
    return norm(input - other, p)


def pdist(x: Any, p: Any = 2.0) -> Any:
    """The distances of all pairs of rows, each pair once: what `cdist(x, x)` has above its diagonal, row by row.

    Parameters
    ----------
    x : (n, k), floating point.
    p : of the norm, not negative.

    Returns
    -------
    tensor : (n (n - 1) / 2,)

    Raises
    ------
    ShapeError : `x` is no matrix.
    ArgumentError : p is not a number, or negative.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.pdist(tw.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]))
    tensor([5.0000, 1.0000, 4.2426])
    """
    if x.ndim != 2:
        raise ShapeError(f"pdist only supports 2D tensors, got: {x.ndim}D")
    require_number(p, "pdist")
    if p < 0:
        raise ArgumentError("pdist only supports non-negative p values")
    n, k = x.shape
    if not mode.tracing and n * n * k > _MANY and _are_plain(x):
        found = _measured(x, x, float(p), pairs=True)
        if found is not None:
            return found
    first, second = triu_indices(n, n, 1)
    return norm(index_select(x, 0, first) - index_select(x, 0, second), p, -1)


def pairwise_distance(x1: Any, x2: Any, p: Any = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Any:
    """The distances of corresponding rows: ``|x1 - x2 + eps|_p`` over the last dimension.

    Parameters
    ----------
    x1, x2 : (..., k), floating point, broadcast.
    p : of the norm, see `norm`.
    eps : added to every difference, so that no gradient is that of a norm at 0.
    keepdim : leave the last dimension with size 1.

    Raises
    ------
    ShapeError : the shapes do not broadcast.
    ArgumentError : p is not a number.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.nn.functional.pairwise_distance(tw.tensor([[0.0, 0.0]]), tw.tensor([[3.0, 4.0]]), eps=0)
    tensor([5.])
    """
    require_number(p, "pairwise_distance")
    return norm(x1 - x2 + eps, p, -1, keepdim)


def require_number(p: Any, function: str) -> None:
    """Refuse the names of norms, which `norm` knows, where a number is meant.

    Raises
    ------
    ArgumentError : `p` is a string.
    """
    if isinstance(p, str):
        raise ArgumentError(f"{function}(): argument 'p' must be float, not str ({p!r})")


__all__ = ["cdist", "dist", "pairwise_distance", "pdist"]
