"""Variance, standard deviation, and sums and means that leave out nan: compositions of `sum` and `mean`."""

from __future__ import annotations

from typing import Any, NamedTuple

from common.core.aliases import accept_numpy_names
from common.core.docstrings import sections_of
from common.core.errors import ArgumentError
from common.core.int_arguments import flag, normalize_dims
from common.core.op import Op
from common.core.python_numbers import check_range
from common.core.return_types import returned
from common.ops._define import composite
from common.ops._samples import join, of_reduction, one
from common.ops.math.arithmetic import sqrt
from common.ops.math.cast import converted, to
from common.ops.math.compare import eq, isnan, logical_not, where
from common.ops.reduce.mapped_sums import nansum_, sum_of_deviations
from common.ops.reduce.reductions import amax, amin, mean_, reduced_size, require_float, spread, sum_
from common.ops.shape.view import reshape


@returned("aminmax")
class Aminmax(NamedTuple):
    """The result of `aminmax`.

    Attributes
    ----------
    min, max : the extremes.
    """

    min: Any
    max: Any


def _freedom(shape: Any, dim: tuple[int, ...], correction: Any) -> Any:
    """The number of elements less `correction`, at least 0: dividing by 0 gives inf or nan, as in PyTorch."""
    n = reduced_size(shape, dim)
    if isinstance(correction, int):
        check_range(correction)
    else:
        n = int(n)  # polynomials of sizes have whole coefficients, so a trace is made per size
    return 0 if n < correction else n - correction


def _moments(x: Any, dim: tuple[int, ...], correction: Any, keepdim: bool) -> tuple[Any, Any]:
    """Variance, and the mean with its dimensions kept."""
    mean = mean_(x, dim=dim, keepdim=True)
    variance = sum_of_deviations(x, mean, dim=dim, keepdim=keepdim) / _freedom(x.shape, dim, correction)
    return variance, mean


def variance_around(x: Any, mean: Any, dim: tuple[int, ...]) -> Any:
    """The unbiased variance over `dim`; the mean is given with its dimensions kept."""
    return sum_of_deviations(x, mean, dim=dim, keepdim=False) / _freedom(x.shape, dim, 1)


def _deviate(g: Any, x: Any, dim: tuple[int, ...], correction: Any) -> Any:
    """The gradient of the variance: 2 (x - mean) / (n - correction)."""
    slope = g * 2 / _freedom(x.shape, dim, correction)
    return spread(slope, x.shape, dim) * (x - mean_(x, dim=dim, keepdim=True))


def _halved(g: Any, y: Any) -> Any:
    """The cotangent of a variance from that of its root; 0 where the root is 0, as in PyTorch."""
    zero = eq(y, 0)  # there the quotient is finite too: the rule is differentiated for a tangent
    return where(zero, 0, g / where(zero, 1, y * 2))


def _var(x: Any, *, dim: tuple[int, ...], correction: Any, keepdim: bool) -> Any:
    return _moments(x, dim, correction, keepdim)[0]


def _std(x: Any, *, dim: tuple[int, ...], correction: Any, keepdim: bool) -> Any:
    return sqrt(_moments(x, dim, correction, keepdim)[0])


def _samples(rng: Any, dtype: Any) -> list[Any]:
    return [(x, {**attrs, "correction": 1}) for x, attrs in of_reduction(rng, dtype) if attrs["dim"]]


var_ = composite(
    "var", _var, (lambda g, x, dim, correction: _deviate(g, x, dim, correction),), inputs=("x",), samples=_samples,
    doc="S((x - mean)^2) / (n - correction). d/dx = 2 (x - mean) / (n - correction).",
)  # fmt: skip

std_ = composite(
    "std", _std, (lambda g, y, x, dim, correction: _deviate(_halved(g, y), x, dim, correction),), inputs=("x",),
    samples=_samples, doc="sqrt(var). d/dx = (x - mean) / ((n - correction) y), 0 where y = 0.",
)  # fmt: skip


def _both(name: str, root: bool) -> Op:
    """`var` or `std` together with the mean."""

    def forward(x: Any, *, dim: tuple[int, ...], correction: Any, keepdim: bool) -> Any:
        variance, mean = _moments(x, dim, correction, keepdim)
        return (sqrt(variance) if root else variance), mean if keepdim else reshape(mean, variance.shape)

    def of_root(g: Any, first: Any, x: Any, dim: tuple[int, ...], correction: Any) -> Any:
        g_root, g_mean = g
        return rule((None if g_root is None else _halved(g_root, first[0]), g_mean), x, dim, correction)

    def rule(g: Any, x: Any, dim: tuple[int, ...], correction: Any) -> Any:
        (g_variance, g_mean), total = g, None
        if g_variance is not None:
            total = _deviate(g_variance, x, dim, correction)
        if g_mean is not None:
            c = spread(g_mean / reduced_size(x.shape, dim), x.shape, dim)
            total = c if total is None else total + c
        return total

    return composite(
        f"{name}_mean", forward, (of_root if root else rule,), inputs=("x",), nout=2,
        samples=join(*(one(4, 5, dim=(1,), correction=1, keepdim=k) for k in (False, True))),
        doc=f"`{name}` and the mean that it is taken about. Gradients as for each.",
    )  # fmt: skip


var_mean_ = _both("var", root=False)
std_mean_ = _both("std", root=True)


def _spread_of(op: Op, name: str, x: Any, dim: Any, unbiased: Any, keepdim: bool, correction: Any) -> Any:
    """One of the four ops by PyTorch's arguments."""
    require_float(name, x)
    if isinstance(dim, bool):  # var(x, unbiased)
        if unbiased is not None:
            raise ArgumentError(f"{name}(): dim must be an int or a tuple of ints, got {dim}")
        dim, unbiased = None, dim
    if unbiased is not None and correction is not None:
        raise ArgumentError(f"{name}(): unbiased and correction say the same; give one of them")
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    elif isinstance(correction, float) and correction.is_integer():
        correction = int(correction)
    dims, keepdim = normalize_dims(dim, x.ndim, name), flag(keepdim, name, "keepdim")
    return op(x, dim=dims, correction=correction, keepdim=keepdim)


@accept_numpy_names
def var(x: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, correction: Any = None) -> Any:
    """Variance over `dim`: the sum of squared deviations from the mean, divided by n - correction.

    Parameters
    ----------
    x : (...), floating point.
    dim : the dimension, or several; all by default. A bool stands for `unbiased`.
    unbiased : True for correction 1 (the default), False for 0.
    keepdim : leave reduced dimensions with size 1.
    correction : what is taken from the number of elements n; where it is n or more, the result is inf or nan.

    Raises
    ------
    DTypeError : `x` is not floating point.
    ArgumentError : both `unbiased` and `correction`.
    IndexRangeError, ShapeError : a dimension that does not exist, or is named twice.

    Examples
    --------
    >>> import dynamic as tw
    >>> x = tw.tensor([[1.0, 3.0], [2.0, 6.0]])
    >>> tw.var(x, dim=1), tw.var(x, correction=0)
    (tensor([2., 8.]), tensor(3.5000))
    """
    return _spread_of(var_, "var", x, dim, unbiased, keepdim, correction)


@accept_numpy_names
def std(x: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, correction: Any = None) -> Any:
    """Standard deviation over `dim`: the square root of `var`, which says what the arguments mean.

    Parameters
    ----------
    x : (...), floating point.
    dim, unbiased, keepdim, correction : as for `var`.

    Raises
    ------
    DTypeError : `x` is not floating point.
    ArgumentError : both `unbiased` and `correction`.
    IndexRangeError, ShapeError : a dimension that does not exist, or is named twice.
    """
    return _spread_of(std_, "std", x, dim, unbiased, keepdim, correction)


@sections_of(std)
@accept_numpy_names
def var_mean(x: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, correction: Any = None) -> Any:
    """Variance and mean over `dim`, as a tuple; see `var`."""
    return _spread_of(var_mean_, "var_mean", x, dim, unbiased, keepdim, correction)


@sections_of(std)
@accept_numpy_names
def std_mean(x: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, correction: Any = None) -> Any:
    """Standard deviation and mean over `dim`, as a tuple; see `var`."""
    return _spread_of(std_mean_, "std_mean", x, dim, unbiased, keepdim, correction)


@accept_numpy_names
def nansum(x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """`sum` with 0 in place of nan.

    Parameters
    ----------
    x : (...)
    dim : the dimension, or several; all by default.
    keepdim : leave reduced dimensions with size 1.
    dtype : to which `x` is converted first, and that of the result; by default as above.

    Raises
    ------
    IndexRangeError, ShapeError : a dimension that does not exist, or is named twice.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.nansum(tw.tensor([1.0, float("nan"), 2.0]))
    tensor(3.)
    """
    if dtype is not None:
        return converted(nansum(converted(x, dtype), dim, keepdim), dtype)
    op = nansum_ if x.dtype.kind == "f" else sum_
    return op(x, dim=normalize_dims(dim, x.ndim, "nansum"), keepdim=flag(keepdim, "nansum", "keepdim"))


@accept_numpy_names
def nanmean(x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The mean of the elements that are not nan; nan where there are none.

    Parameters
    ----------
    x : (...), floating point.
    dim : the dimension, or several; all by default.
    keepdim : leave reduced dimensions with size 1.
    dtype : to which `x` is converted first, and that of the result; by default as above.

    Raises
    ------
    DTypeError : `x` is not floating point.
    IndexRangeError, ShapeError : a dimension that does not exist, or is named twice.
    """
    x = converted(x, dtype)
    require_float("nanmean", x)
    dims = normalize_dims(dim, x.ndim, "nanmean")
    keepdim = flag(keepdim, "nanmean", "keepdim")
    count = sum_(logical_not(isnan(x)), dim=dims, keepdim=keepdim)
    return nansum_(x, dim=dims, keepdim=keepdim) / to(count, dtype=x.dtype, x_dtype=count.dtype)


@accept_numpy_names
def aminmax(x: Any, *, dim: Any = None, keepdim: bool = False) -> Any:
    """`amin` and `amax` over `dim`.

    Parameters
    ----------
    x : (...)
    dim : the dimension, or several; all by default.
    keepdim : leave reduced dimensions with size 1.

    Raises
    ------
    ShapeError : a reduced dimension has size 0.
    IndexRangeError : a dimension that does not exist.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.aminmax(tw.tensor([3, 1, 2]))
    torch.return_types.aminmax(
    min=tensor(1),
    max=tensor(3))
    """
    return Aminmax(amin(x, dim, keepdim), amax(x, dim, keepdim))


__all__ = ["aminmax", "nanmean", "nansum", "std", "std_mean", "var", "var_mean"]
