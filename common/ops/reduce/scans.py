"""Running sums, products and extremes along one dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from common.core.aliases import accept_numpy_names
from common.core.docstrings import sections_of
from common.core.dtypes import int64, refuse
from common.core.int_arguments import normalize_dim
from common.core.op import NativeCall, Op
from common.core.return_types import values_and_indices
from common.core.spec import Spec, around
from common.core.unbroadcast import reshaped
from common.ops._define import composite, kernel
from common.ops._samples import away_from_zero, join, one
from common.ops.index.gather import scatter_zeros
from common.ops.math.cast import converted, to
from common.ops.math.compare import eq, where
from common.ops.math.transcendental import exp, log
from common.ops.shape.view import reshape

_INF = float("inf")


def _scan(name: str, inputs: tuple[str, ...], rules: Sequence[Any], doc: str, *extra: str) -> Op:
    """A kernel of `common.kernels.arrays.scans` that carries partial results; `extra` attributes are its last
    numbers.
    """

    def native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
        from common.kernels.arrays import scans

        numbers = [int(attrs[n]) for n in ("reverse", *extra)]
        source = getattr(scans, f"{name}_source")(outs[0].dtype)
        scratch = scans.accumulators()
        return [NativeCall(source, name, (*around(outs[0].shape, attrs["dim"]), *numbers), scratch=scratch)]

    def oracle(*operands: np.ndarray, **attrs: Any) -> np.ndarray:
        from common.kernels.arrays import scans

        return scans.scan_oracle(name, *operands, **attrs)

    def samples(rng: Any, dtype: Any) -> list[Any]:
        cases = [((17, 3), 0, False), ((3, 9), 1, False), ((2, 4, 3), 1, True), ((9, 5), 1, True)]
        return [
            (tuple(away_from_zero(rng, shape, dtype) for _ in inputs),
             {"dim": dim, "reverse": reverse, **dict.fromkeys(extra, not reverse)})
            for shape, dim, reverse in cases
        ]  # fmt: skip

    return kernel(
        name, inputs, lambda *specs, **attrs: Spec(specs[0].shape, specs[0].dtype), native, oracle, rules,
        samples=samples, doc=doc, attrs=("dim", "reverse", *extra),
    )  # fmt: skip


cumsum_: Op = _scan(
    "cumsum", ("x",), (lambda g, dim, reverse: cumsum_(g, dim=dim, reverse=not reverse),),
    "Running sums, one after the other; float32 is held in float64. d/dx: the running sum of g from the other end.",
)  # fmt: skip

#: Transposing it turns direction and `shifted` round, so derivatives of every order are recurrences again.
recurrence_: Op = _scan(
    "recurrence", ("a", "b"),
    (lambda g, a, y, dim, reverse, shifted: _weight_rule(g, a, y, dim, reverse, shifted),
     lambda g, a, dim, reverse, shifted: recurrence_(a, g, dim=dim, reverse=not reverse, shifted=not shifted)),
    "y[i] = b[i] + a[i] y[i-1], or a[i-1]: a linear recurrence. d/db: the transposed recurrence h of g; "
    "d/da = h y[i-1].",
    "shifted",
)  # fmt: skip

cumprod_: Op = _scan(
    "cumprod", ("x",),
    (lambda g, x, y, dim, reverse: (
        recurrence_(x, g, dim=dim, reverse=not reverse, shifted=True) * delay_(y, dim=dim, reverse=reverse, fill=1)),),
    "Running products, one after the other; float32 is held in float64. "
    "d/dx[i] = y[i-1] h[i], h[i] = g[i] + x[i+1] h[i+1]: no division, so zeros are no exception.",
)  # fmt: skip


def _weight_rule(g: Any, a: Any, y: Any, dim: int, reverse: bool, shifted: bool) -> Any:
    h = recurrence_(a, g, dim=dim, reverse=not reverse, shifted=not shifted)
    if shifted:  # a[i-1] meets h[i] and y[i-1]
        return delay_(h, dim=dim, reverse=not reverse, fill=0) * y
    return h * delay_(y, dim=dim, reverse=reverse, fill=0)


def _delay_native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
    from common.kernels.arrays import scans

    numbers = (int(attrs["reverse"]), attrs["fill"])
    return [NativeCall(scans.delay_source(outs[0].dtype), "delay", (*around(outs[0].shape, attrs["dim"]), *numbers))]


def _delay_oracle(x: np.ndarray, dim: int, reverse: bool, fill: int) -> np.ndarray:
    out = np.full_like(x, fill)
    to, source = (np.moveaxis(each, dim, 0) for each in (out, x))
    if reverse:
        to[:-1] = source[1:]
    else:
        to[1:] = source[:-1]
    return out


delay_: Op = kernel(
    "delay", ("x",), lambda x, *, dim, reverse, fill: Spec(x.shape, x.dtype), _delay_native, _delay_oracle,
    (lambda g, dim, reverse: delay_(g, dim=dim, reverse=not reverse, fill=0),),
    samples=join(one(4, 5, dim=1, reverse=False, fill=1), one(4, 5, 2, dim=1, reverse=True, fill=0)),
    doc="Every element one place on, a number in the first place. d/dx: g one place back.",
    attrs=("dim", "reverse", "fill"),
)  # fmt: skip


def _running_op(name: str) -> Op:
    def native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
        from common.kernels.arrays import scans

        source = getattr(scans, f"{name}_source")(specs[0].dtype)
        return [NativeCall(source, name, around(specs[0].shape, attrs["dim"]), scratch=scans.accumulators())]

    def oracle(x: np.ndarray, dim: int) -> tuple[np.ndarray, np.ndarray]:
        from common.kernels.arrays import scans

        indices = scans.running_position(x, dim, low=name == "cummin")
        return np.take_along_axis(x, indices, dim), indices

    return kernel(
        name, ("x",), lambda x, *, dim: (Spec(x.shape, x.dtype), Spec(x.shape, int64)), native, oracle,
        (lambda g, rest, x_shape, dim: scatter_zeros(g[0], rest[1], extent=x_shape[dim], dim=dim),), nout=2,
        samples=join(one(4, 5, dim=1), one(6, 3, dim=0), one(2, 5, 3, dim=1)), attrs=("dim",),
        doc=f"The running {name[3:]}imum and where it is: the last of equal ones, of nan the last. "
            "d/dx: g at the positions, added up.",
    )  # fmt: skip


cummax_ = _running_op("cummax")
cummin_ = _running_op("cummin")


def _shift_of(top: Any) -> Any:
    """The shift of exponents: the running maximum, 0 where it is infinite."""
    return where(eq(top, _INF), 0, where(eq(top, -_INF), 0, top))


def _logcumsumexp(x: Any, *, dim: int) -> Any:
    top = cummax_(x, dim=dim)[0]
    shift, before = _shift_of(top), delay_(top, dim=dim, reverse=False, fill=0)
    # a sum of nothing but e^-inf stays 0, however far the maximum rises
    weight = where(eq(before, -_INF), 0, exp(_shift_of(before) - shift))
    return log(recurrence_(weight, exp(x - shift), dim=dim, reverse=False, shifted=False)) + shift


def _logcumsumexp_rule(g: Any, y: Any, x: Any, dim: int) -> Any:
    # nothing follows the last: a weight of 0, however large y is
    following = delay_(y, dim=dim, reverse=True, fill=2**62)
    none = eq(y, -_INF)
    weight = where(none, 0, exp(where(none, 0, y) - following))
    total = recurrence_(weight, g, dim=dim, reverse=True, shifted=False)
    return total * where(none, 0, exp(x - where(none, 0, y)))


logcumsumexp_ = composite(
    "logcumsumexp", _logcumsumexp, (_logcumsumexp_rule,), inputs=("x",),
    samples=join(one(4, 5, dim=1), one(4, 5, dim=0)),
    doc="log(s) + m with the running maximum m and s[i] = e^(x[i] - m[i]) + e^(m[i-1] - m[i]) s[i-1]. "
        "d/dx[i] = e^(x[i] - y[i]) h[i], h[i] = g[i] + e^(y[i] - y[i+1]) h[i+1]; no exponent is above 0.",
)  # fmt: skip


def _along(op: Op, name: str, x: Any, dim: int, **attrs: Any) -> Any:
    """A scan along a dimension; a 0-d tensor is a row of one element."""
    axis = normalize_dim(dim, x.ndim, name)
    if x.ndim:
        return op(x, dim=axis, **attrs)
    return reshaped(op(reshape(x, 1), dim=0, **attrs), (), op.node_name)


def _summed(x: Any) -> Any:
    return x if x.dtype.kind == "f" or x.dtype == int64 else to(x, dtype=int64, x_dtype=x.dtype)


@accept_numpy_names
def cumsum(x: Any, dim: int, *, dtype: Any = None) -> Any:
    """Running sums along `dim`; ints and bools as int64.

    Sums are taken from the first element to the last; those of float32 are held in float64 and rounded once each. The
    last one is therefore not `sum`, bit by bit.

    Parameters
    ----------
    x : (...)
    dim : the dimension.
    dtype : to which `x` is converted first, and that of the result; by default as above.

    Raises
    ------
    IndexRangeError : a dimension that does not exist.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.cumsum(tw.tensor([1, 2, 3]), 0)
    tensor([1, 3, 6])
    """
    if dtype is not None:
        return converted(cumsum(converted(x, dtype), dim), dtype)
    return _along(cumsum_, "cumsum", _summed(x), dim, reverse=False)


@sections_of(cumsum)
@accept_numpy_names
def cumprod(x: Any, dim: int, *, dtype: Any = None) -> Any:
    """Running products along `dim`; ints and bools as int64. Gradients are right at zeros, too.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.cumprod(tw.tensor([2.0, 3.0, 4.0]), 0)
    tensor([ 2.,  6., 24.])
    """
    if dtype is not None:
        return converted(cumprod(converted(x, dtype), dim), dtype)
    return _along(cumprod_, "cumprod", _summed(x), dim, reverse=False)


@accept_numpy_names
def logcumsumexp(x: Any, dim: int) -> Any:
    """log(cumsum(e^x)) along `dim`, without overflow.

    Parameters
    ----------
    x : (...), of floats.
    dim : the dimension.

    Raises
    ------
    IndexRangeError : a dimension that does not exist.
    DTypeError : bools or ints.
    """
    refuse("logcumsumexp", x)
    return _along(logcumsumexp_, "logcumsumexp", x, dim)


def _extremes(op: Op, x: Any, dim: int) -> Any:
    axis = normalize_dim(dim, x.ndim, op.name)
    if x.ndim:
        return values_and_indices(op.name, *op(x, dim=axis))
    return values_and_indices(op.name, *(reshaped(part, (), op.node_name) for part in op(reshape(x, 1), dim=0)))


@accept_numpy_names
def cummax(x: Any, dim: int) -> Any:
    """Running maxima along `dim` and their positions; the last of equal ones, and nan from the first nan on.

    The gradient goes to the element at the position.

    Parameters
    ----------
    x : (...)
    dim : the dimension.

    Raises
    ------
    IndexRangeError : a dimension that does not exist.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.cummax(tw.tensor([1, 3, 2, 3]), 0)
    torch.return_types.cummax(
    values=tensor([1, 3, 3, 3]),
    indices=tensor([0, 1, 1, 3]))
    """
    return _extremes(cummax_, x, dim)


@sections_of(cummax)
@accept_numpy_names
def cummin(x: Any, dim: int) -> Any:
    """Running minima along `dim` and their positions; see `cummax`."""
    return _extremes(cummin_, x, dim)


__all__ = ["cummax", "cummin", "cumprod", "cumsum", "logcumsumexp"]
