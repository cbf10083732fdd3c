"""Softmax and its relatives, layer normalisation: written with ops, with rules that save memory traffic."""

from __future__ import annotations

from typing import Any

from common.core.aliases import accept_numpy_names
from common.core.dispatch import apply, known_attrs
from common.core.docstrings import sections_of
from common.core.dtypes import default_float, refuse
from common.core.errors import ArgumentError, ShapeError
from common.core.int_arguments import flag, integers, normalize_dim, normalize_dims, shown
from common.core.op import Op
from common.core.source_lines import warn_user
from common.core.unbroadcast import reshaped
from common.ops._define import composite
from common.ops._samples import away_from_zero, join, one
from common.ops.math.arithmetic import abs, rsqrt
from common.ops.math.cast import converted
from common.ops.math.compare import eq, where
from common.ops.math.transcendental import exp, log
from common.ops.reduce.mapped_sums import sum_of_exponentials
from common.ops.reduce.reductions import amax_, mean_, reduced_size, sum_
from common.ops.shape.view import expand, reshape

_INF = float("inf")


def _top(x: Any, dim: tuple[int, ...]) -> Any:
    """The maximum over `dim`; 0 over no elements, which have none."""
    if any(x.shape[d] == 0 for d in dim):
        return sum_(x, dim=dim, keepdim=True)
    return amax_(x, dim=dim, keepdim=True)


def _softmax(x: Any, *, dim: int) -> Any:
    e = exp(x - _top(x, (dim,)))
    return e / sum_(e, dim=(dim,), keepdim=True)


softmax_ = composite(
    "softmax", _softmax, (lambda g, y, dim: y * (g - sum_(g * y, dim=(dim,), keepdim=True)),), inputs=("x",),
    samples=join(one(4, 5, dim=1), one(4, 5, dim=0)),
    doc="e^(x - max) / sum. d/dx = y (g - sum(g y)).",
)  # fmt: skip


def _log_softmax(x: Any, *, dim: int) -> Any:
    shifted = x - _top(x, (dim,))
    return shifted - log(sum_(exp(shifted), dim=(dim,), keepdim=True))


log_softmax_ = composite(
    "log_softmax", _log_softmax, (lambda g, y, dim: g - exp(y) * sum_(g, dim=(dim,), keepdim=True),), inputs=("x",),
    samples=join(one(4, 5, dim=1), one(4, 5, dim=0)),
    doc="x - max - log(sum(e^(x - max))). d/dx = g - e^y sum(g).",
)  # fmt: skip


def _logsumexp(x: Any, *, dim: tuple[int, ...], keepdim: bool) -> Any:
    top = _top(x, dim)
    top = where(eq(abs(top), _INF), 0, top)
    y = log(sum_of_exponentials(x, top, dim=dim, keepdim=True)) + top
    return y if keepdim else reshape(y, tuple(n for i, n in enumerate(x.shape) if i not in dim))


def _logsumexp_rule(g: Any, y: Any, x: Any, dim: tuple[int, ...]) -> Any:
    shape = tuple(1 if i in dim else n for i, n in enumerate(x.shape))
    return reshape(g, shape) * exp(x - reshape(y, shape))


logsumexp_ = composite(
    "logsumexp", _logsumexp, (_logsumexp_rule,), inputs=("x",),
    samples=join(one(4, 5, dim=(1,), keepdim=False), one(4, 5, dim=(0, 1), keepdim=True)),
    doc="log(sum(e^x)) without overflow. d/dx = e^(x - y).",
)  # fmt: skip


def _layer_norm(x: Any, *, dim: tuple[int, ...], eps: float) -> Any:
    mean = mean_(x, dim=dim, keepdim=True)
    centred = x - mean
    variance = mean_(centred * centred, dim=dim, keepdim=True)
    rstd = rsqrt(variance + eps)
    return centred * rstd, mean, rstd


def _layer_norm_rule(g: Any, y: Any, x_shape: Any, dim: tuple[int, ...]) -> Any:
    """Contributions of all three results: a second derivative reaches the mean and the scale as well."""
    (gy, g_mean, g_rstd), (out, _, rstd) = g, y
    total = None
    if gy is not None:
        total = rstd * (gy - mean_(gy, dim=dim, keepdim=True) - out * mean_(gy * out, dim=dim, keepdim=True))
    if g_mean is not None:
        c = expand(g_mean / reduced_size(x_shape, dim), x_shape)
        total = c if total is None else total + c
    if g_rstd is not None:
        c = g_rstd * (rstd * rstd) / -reduced_size(x_shape, dim) * out
        total = c if total is None else total + c
    return total


def _normalized(x: Any, rest: Any) -> Any:
    return (x - rest[1]) * rest[2]


def _normalize_rule(g: Any, rest: Any, x: Any, dim: tuple[int, ...]) -> Any:
    """From the operand, and not from the first result, which may be overwritten: activations are applied in place."""
    return _layer_norm_rule(g, (_normalized(x, rest), *rest[1:]), x.shape, dim)


normalize_ = composite(
    "normalize", _layer_norm, (_normalize_rule,), inputs=("x",), nout=3,
    samples=join(one(4, 5, dim=(1,), eps=1e-5), one(2, 3, 4, dim=(1, 2), eps=1e-3)),
    doc="(x - mean) / sqrt(variance + eps), mean, 1 / sqrt(variance + eps). d/dx = r (g - mean(g) - y mean(g y)), "
        "1 / n and -r^2 y / n.",
    node_name="NativeLayerNorm",
)  # fmt: skip


def _affine_samples(rng: Any, dtype: Any) -> list[Any]:
    forms = [((4, 5), (5,), (1,)), ((2, 3, 4), (3, 4), (1, 2)), ((6,), (6,), (0,))]
    return [
        (tuple(away_from_zero(rng, shape, dtype) for shape in (x, w, w)), {"dim": dim, "eps": 1e-3})
        for x, w, dim in forms
    ]


def _affine_layer_norm(x: Any, weight: Any, bias: Any, *, dim: tuple[int, ...], eps: float) -> Any:
    y, mean, rstd = _layer_norm(x, dim=dim, eps=eps)
    return y * weight + bias, mean, rstd


def _affine_layer_norm_rule(g: Any, rest: Any, x: Any, weight: Any, dim: tuple[int, ...]) -> Any:
    inner = None if g[0] is None else g[0] * weight
    return _layer_norm_rule((inner, *g[1:]), (_normalized(x, rest), *rest[1:]), x.shape, dim)


affine_normalize_ = composite(
    "affine_normalize", _affine_layer_norm,
    (_affine_layer_norm_rule,
     lambda g, rest, x: None if g[0] is None else g[0] * _normalized(x, rest),
     lambda g: g[0]),
    inputs=("x", "weight", "bias"), nout=3,
    samples=_affine_samples,
    doc="n = (x - mean) / sqrt(variance + eps); n weight + bias, mean, 1 / sqrt(variance + eps). d/dx as of normalize, "
        "with g weight for g; d/dweight = g n, d/dbias = g, summed over rows.",
    node_name="NativeLayerNorm",
)  # fmt: skip


def _over(op: Op, x: Any, dim: int | None) -> Any:
    """An op over one dimension; a 0-d tensor is a row of one element."""
    refuse(op.name, x)
    dim = chosen_dim(op.name, x) if dim is None else dim
    axis = normalize_dim(dim, x.ndim, op.name)
    if x.ndim:
        return apply(op, (x,), known_attrs(None, dim=axis))
    return reshaped(op(reshape(x, 1), dim=0), (), op.node_name)


def chosen_dim(name: str, x: Any) -> int:
    """The dimension of PyTorch's softmax without one: 0 for 0, 1 and 3 dimensions, else 1; it warns, too."""
    warn_user(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        UserWarning
    )
    return 0 if x.ndim in (0, 1, 3) else 1


@accept_numpy_names
def softmax(x: Any, dim: int | None = None, dtype: Any = None) -> Any:
    """e^x along `dim`, divided by its sum.

    Parameters
    ----------
    x : (...), of floats, unless `dtype` is one of them.
    dim : the dimension; by default 0 for 0, 1 and 3 dimensions, else 1, with a warning.
    dtype : to which `x` is converted first, and that of the result; by default as above.

    Raises
    ------
    IndexRangeError : a dimension that does not exist.
    DTypeError : bools or ints.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.softmax(tw.tensor([0.0, 0.0]), dim=0)
    tensor([0.5000, 0.5000])
    """
    return _over(softmax_, converted(x, dtype), dim)


@sections_of(softmax)
@accept_numpy_names
def log_softmax(x: Any, dim: int | None = None, dtype: Any = None) -> Any:
    """The logarithm of `softmax`, without its rounding."""
    return _over(log_softmax_, converted(x, dtype), dim)


@accept_numpy_names
def logsumexp(x: Any, dim: Any, keepdim: bool = False) -> Any:
    """log(sum(e^x)) over `dim`.

    Parameters
    ----------
    x : (...); ints become float32.
    dim : the dimension, or several.
    keepdim : leave reduced dimensions with size 1.

    Raises
    ------
    IndexRangeError, ShapeError : a dimension that does not exist, or is named twice.
    """
    x = x if x.dtype.kind == "f" else converted(x, default_float())  # unsigned ints wrap below the maximum
    return logsumexp_(x, dim=normalize_dims(dim, x.ndim, "logsumexp"), keepdim=flag(keepdim, "logsumexp", "keepdim"))


def layer_norm(x: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    """`x` normalised to mean 0 and variance 1 over its last dimensions, then scaled and shifted.

    Parameters
    ----------
    x : (..., *normalized_shape), of floats.
    normalized_shape : sizes of the last dimensions, or one.
    weight, bias : (*normalized_shape), or None.
    eps : added to the variance.

    Raises
    ------
    ShapeError : `x` does not end in `normalized_shape`, or `weight` or `bias` has another shape.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.layer_norm(tw.tensor([1.0, 3.0]), 2)
    tensor([-1.0000,  1.0000])
    """
    return layer_norms(x, normalized_shape, weight, bias, eps)[0]


def require_ending(op: str, x: Any, sizes: tuple[Any, ...], **parameters: Any) -> None:
    """Refuse a normalized_shape with which the shape of `x` does not end, and parameters of another shape.

    Raises
    ------
    ShapeError : always for these.
    """
    if not sizes:
        raise ShapeError(f"{op}(): Expected normalized_shape to be at least 1-dimensional, got normalized_shape = []")
    if len(sizes) > x.ndim or any(m != n for m, n in zip(x.shape[-len(sizes) :], sizes)):
        wanted = ", ".join(map(str, ("*", *sizes)))
        raise ShapeError(f"{op}(): Given normalized_shape={list(sizes)}, expected input with shape [{wanted}], but got "
                         f"input of size {list(x.shape)}")  # fmt: skip
    for name, given in parameters.items():
        if given is not None and (given.ndim != len(sizes) or any(m != n for m, n in zip(given.shape, sizes))):
            raise ShapeError(
                f"{op}(): Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                f"{list(given.shape)} and normalized_shape = {list(sizes)}"
            )


def layer_norms(x: Any, normalized_shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    """The result of `layer_norm`, the means and the reciprocals of the deviations."""
    refuse("layer_norm", x)
    sizes = integers(normalized_shape, "layer_norm", "normalized_shape")
    given: Any = eps
    if not isinstance(given, (int, float)) and not hasattr(given, "dtype"):
        raise ArgumentError(f"layer_norm(): argument 'eps' must be a number, not {type(eps).__name__} ({shown(eps)})")
    require_ending("layer_norm", x, sizes, weight=weight, bias=bias)
    over: dict[str, Any] = {"dim": tuple(range(x.ndim - len(sizes), x.ndim)), "eps": eps}
    if weight is not None and bias is not None:
        return affine_normalize_(x, weight, bias, **over)
    y, mean, rstd = normalize_(x, **over)
    if weight is not None:
        y = y * weight
    return (y if bias is None else y + bias), mean, rstd


__all__ = ["layer_norm", "log_softmax", "logsumexp", "softmax"]
