"""Vector norms: compositions of `sum`, `amax` and `amin` over magnitudes."""

from __future__ import annotations

from math import inf
from typing import Any

from common.core.aliases import accept_numpy_names
from common.core.dtypes import bool_
from common.core.errors import ArgumentError, DTypeError, ShapeError
from common.core.int_arguments import flag, normalize_dim, normalize_dims
from common.ops._define import composite
from common.ops._samples import join, one
from common.ops.math.arithmetic import abs, neg, pow, sign, sqrt, zeros_like
from common.ops.math.cast import converted, to
from common.ops.math.compare import eq, gt, maximum, ne, where
from common.ops.reduce.mapped_sums import sum_of_cubes, sum_of_magnitudes, sum_of_squares
from common.ops.reduce.reductions import amax_, amin_, kept, require_float, spread, sum_
from common.ops.shape.view import reshape


def _norm(x: Any, *, p: float, dim: tuple[int, ...], keepdim: bool) -> Any:
    how = {"dim": dim, "keepdim": keepdim}
    if p == 0:
        return sum_(to(ne(x, 0), dtype=x.dtype, x_dtype=bool_), **how)
    if p == 1:
        return sum_of_magnitudes(x, **how)
    if p == 2:
        return sqrt(sum_of_squares(x, **how))
    if p == inf:
        return maximum(amax_(x, **how), neg(amin_(x, **how)))  # magnitudes are not stored
    if p == -inf:
        return amin_(abs(x), **how)
    # cubes are what pow is for 3, without its other cases
    powers = sum_of_cubes(x, **how) if p == 3 else sum_(pow(abs(x), p), **how)
    return pow(powers, 1 / p)


def _norm_rule(g: Any, y: Any, x: Any, p: float, dim: tuple[int, ...]) -> Any:
    if p == 0:
        return zeros_like(x)
    if p == 1:
        return sign(x) * spread(g, x.shape, dim)
    y, g = reshape(y, kept(x.shape, dim)), reshape(g, kept(x.shape, dim))
    if p in (inf, -inf):
        ties = to(eq(abs(x), y), dtype=x.dtype, x_dtype=bool_)
        return sign(x) * (ties * (g / sum_(ties, dim=dim, keepdim=True)))
    zero = eq(y, 0)
    y = where(zero, 1, y)  # a quotient that is not used is finite, also where the rule is differentiated for a tangent
    if p == 2:
        return x * where(zero, 0, g / y)
    scale = where(zero, 0, g / pow(y, p - 1))
    return where(eq(x, 0), 0, sign(x) * pow(abs(x), p - 1)) * scale


norm_ = composite(
    "norm", _norm, (_norm_rule,), inputs=("x",), node_name="LinalgVectorNorm",
    samples=join(*(one(4, 5, p=p, dim=(1,), keepdim=False) for p in (0.0, 1.0, 2.0, 2.5, inf, -inf)),
                 one(4, 5, p=2.0, dim=(0, 1), keepdim=True), one(4, 5, p=-1.5, dim=(0,), keepdim=True)),
    doc="S(|x|^p)^(1/p); p = 2: sqrt(S(x x)); 0: how many are not 0; inf, -inf: the largest, smallest magnitude. "
        "d/dx = sign(x) |x|^(p-1) / y^(p-1), 0 where y = 0; shared by ties of inf and -inf; 0 for p = 0.",
)  # fmt: skip


@accept_numpy_names
def norm(x: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The p-norm of the elements over `dim`, as one vector: ``sum(|x|**p) ** (1/p)``.

    The squares of p = 2 overflow where magnitudes exceed 1.8e19 (float32) or 1.3e154 (float64), as in PyTorch.

    Parameters
    ----------
    x : (...), floating point.
    p : any number; 0 counts elements that are not 0, inf and -inf give the largest and the smallest magnitude.
        "fro", None and 2 are the Euclidean norm. "nuc" is the sum of the singular values of matrices.
    dim : the dimension, or several; all by default.
    keepdim : leave reduced dimensions with size 1.
    dtype : to which `x` is converted first, and that of the result; by default that of `x`.

    Raises
    ------
    DTypeError : `x` is not floating point.
    ArgumentError : another string for `p`.
    ShapeError : an infinite `p` over no elements, "nuc" over other than two dimensions, or a dimension named twice.
    IndexRangeError : a dimension that does not exist.

    Examples
    --------
    >>> import dynamic as tw
    >>> x = tw.tensor([[3.0, -4.0], [0.0, 5.0]])
    >>> tw.norm(x, dim=1), tw.norm(x, 1), tw.norm(x, float("inf"), dim=0)
    (tensor([5., 5.]), tensor(12.), tensor([3., 5.]))
    """
    x = converted(x, dtype)
    require_float("norm", x)
    if isinstance(p, str) and p == "nuc":
        from common.ops.linalg.spectral import svdvals

        dims = normalize_dims(dim, x.ndim, "norm")
        if len(dims) != 2:
            raise ShapeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, dims))}")
        rows = x.permute(*(i for i in range(x.ndim) if i not in dims), *dims)
        found = sum_(svdvals(rows), dim=(x.ndim - 2,), keepdim=False)
        return reshape(found, [1 if i in dims else n for i, n in enumerate(x.shape)]) if keepdim else found
    if isinstance(p, str) and p != "fro":
        raise ArgumentError(f"norm(): p must be a number, inf, -inf, 'fro' or 'nuc', got {p!r}")
    order = 2.0 if p in ("fro", None) else float(p)
    return norm_(x, p=order, dim=normalize_dims(dim, x.ndim, "norm"), keepdim=flag(keepdim, "norm", "keepdim"))


def renorm(x: Any, p: float, dim: int, maxnorm: float) -> Any:
    """The tensor with each part along a dimension made shorter where its norm is above a limit.

    Parameters
    ----------
    x : (..., n, ...), floating point, of two or more dimensions.
    p : of the norm, positive.
    dim : the dimension whose parts are taken.
    maxnorm : the limit.

    Raises
    ------
    ArgumentError : p is not positive, or a negative limit.
    ShapeError : fewer than two dimensions.
    DTypeError : not floating point.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.renorm(tw.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1)
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """
    if not p > 0:
        raise ArgumentError("renorm: non-positive-norm not supported")
    if not maxnorm >= 0:
        raise ArgumentError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    if x.ndim < 2:
        raise ShapeError(f"renorm: input needs at least 2 dimensions, got {x.ndim} dimensions")
    if x.dtype.kind != "f":
        raise DTypeError(f"renorm(): not implemented for {x.dtype}; convert with .to(...)")
    axis = normalize_dim(dim, x.ndim, "renorm")
    lengths = norm(x, p, tuple(i for i in range(x.ndim) if i != axis), True)
    return x * where(gt(lengths, maxnorm), maxnorm / (lengths + 1e-7), 1)


__all__ = ["norm", "renorm"]
