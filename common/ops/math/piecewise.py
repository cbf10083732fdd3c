"""Activations made of straight pieces, and gates."""

from __future__ import annotations

from typing import Any

from common.compiler.primitives import absolute, constant, select
from common.core.aliases import accept_numpy_names
from common.core.dtypes import refuse
from common.core.errors import ArgumentError, ShapeError
from common.core.int_arguments import normalize_dim
from common.core.python_numbers import require_held
from common.kernels.math import elementary as e
from common.ops._define import composite, elementwise
from common.ops._samples import away_from_zero, join, one
from common.ops.math.activations import leaky_scaled
from common.ops.math.arithmetic import abs
from common.ops.math.compare import gt, le, logical_and, lt, where
from common.ops.math.transcendental import sigmoid, tanh
from common.ops.reduce.softmax import softmax
from common.ops.shape.cat import cat
from common.ops.shape.slices import narrow
from common.ops.shape.view import reshape

hardsigmoid = elementwise(
    "hardsigmoid", lambda x: e.clamp(x + 3.0, constant(0, x), constant(6, x)) / 6.0,
    (lambda g, x: where(logical_and(gt(x, -3), lt(x, 3)), g / 6, 0),),
    doc="minimum(maximum(x + 3, 0), 6) / 6. d/dx = 1/6 where -3 < x < 3, else 0.", domain="real",
)  # fmt: skip

hardswish = elementwise(
    "hardswish", lambda x: x * e.clamp(x + 3.0, constant(0, x), constant(6, x)) / 6.0,
    (lambda g, x: where(le(x, -3), 0, where(lt(x, 3), g * (x / 3 + 0.5), g)),),
    doc="x minimum(maximum(x + 3, 0), 6) / 6. d/dx = x / 3 + 1/2 where -3 < x < 3, 0 below, 1 above. Source: Howard "
        "and others, Searching for MobileNetV3, 2019.", domain="real",
)  # fmt: skip

hardshrink_by = elementwise(
    "hardshrink_by", lambda x, low: select(absolute(x) <= low, constant(0, x), x),
    (lambda g, x, low: where(logical_and(le(x, low), le(-low, x)), 0, g), None),
    doc="0 where |x| <= low, else x. d/dx = 0 there, else 1.", domain="real", node_name="Hardshrink",
)  # fmt: skip

softshrink_by = elementwise(
    "softshrink_by", lambda x, low: select(x > low, x - low, select(x < -low, x + low, x * 0.0)),
    (lambda g, x, low: where(logical_and(le(x, low), le(-low, x)), 0, g),
     lambda g, x, low: where(gt(x, low), -g, where(lt(x, -low), g, 0))),
    doc="x - low where x > low, x + low where x < -low, else 0. d/dx = 1, 1, 0; d/dlow = -1, 1, 0.", domain="real",
    node_name="Softshrink",
)  # fmt: skip


def hardshrink(x: Any, lambd: float = 0.5) -> Any:
    """0 where |x| <= lambd, else x.

    Parameters
    ----------
    x : (...), of floats.
    lambd : number.
    """
    return hardshrink_by(x, lambd)


def softshrink(x: Any, lambd: float = 0.5) -> Any:
    """x moved towards 0 by lambd, as far as 0.

    Parameters
    ----------
    x : (...), of floats.
    lambd : number, not negative.

    Raises
    ------
    ArgumentError : `lambd` is negative.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.nn.functional.softshrink(tw.tensor([-2.0, 0.25, 1.0]))
    tensor([-1.5000,  0.0000,  0.5000])
    """
    if isinstance(lambd, (int, float)) and lambd < 0:
        raise ArgumentError(
            f"lambda must be in range [0, the largest number] for input dtype {x.dtype}, but found {lambd}"
        )
    return softshrink_by(x, lambd)


def tanhshrink(x: Any) -> Any:
    """x - tanh(x).

    Parameters
    ----------
    x : (...); ints become float32.
    """
    return x - tanh(x)


def softsign(x: Any) -> Any:
    """x / (1 + |x|).

    Parameters
    ----------
    x : (...); ints become float32.
    """
    return x / (1 + abs(x))


def threshold(x: Any, threshold: float, value: float) -> Any:
    """x where it is above `threshold`, else `value`.

    Parameters
    ----------
    x : (...); ints stay ints, compared with numbers rounded towards zero.
    threshold, value : numbers.

    Raises
    ------
    DTypeError : bools.
    """
    refuse("threshold", x, "b")
    if x.dtype.kind != "f":
        require_held("threshold", x.dtype, *(n for n in (threshold, value) if type(n) in (int, float)))
        threshold, value = (int(n) if isinstance(n, float) else n for n in (threshold, value))
    return where(le(x, threshold), value, x)


def prelu(x: Any, weight: Any) -> Any:
    """x where x > 0, else x weight.

    Parameters
    ----------
    x : (batch, channels, ...)
    weight : one number, () or (1,), or one per channel, (channels,).

    Raises
    ------
    ShapeError : another shape of `weight`.

    References
    ----------
    He and others, Delving deep into rectifiers, 2015.
    """
    channels = x.shape[1] if x.ndim > 1 else 1
    if weight.ndim > 1 or (weight.ndim == 1 and weight.shape[0] not in (1, channels)):
        raise ShapeError(
            "prelu(): Mismatch of parameter numbers and input channel size. Found parameter shape = "
            f"{list(weight.shape)} and channel size = {channels}."
        )
    if weight.ndim == 1 and x.ndim != 1:
        rest = (1,) * (x.ndim - 2)
        weight = reshape(weight, (weight.shape[0], *rest) if x.ndim > 1 else ())
    return leaky_scaled(x, weight)


@accept_numpy_names
def _halves(x: Any, dim: int) -> tuple[Any, Any]:
    n = x.shape[dim] // 2
    return narrow(x, dim, 0, n), narrow(x, dim, n, n)


def _gated(x: Any, *, dim: int) -> Any:
    first, second = _halves(x, dim)
    return first * sigmoid(second)


def _gated_slopes(slope: Any, x: Any, *, dim: int) -> Any:
    first, second = _halves(x, dim)
    s = sigmoid(second)
    return cat([slope * s + 0.0, slope * first * ((1 - s) * s) + 0.0], dim)


def _slopes_by_slope(g: Any, x: Any, dim: int) -> Any:
    (first, second), (of_first, of_second) = _halves(x, dim), _halves(g, dim)
    s = sigmoid(second)
    return of_first * s + of_second * first * ((1 - s) * s)


def _slopes_by_x(g: Any, slope: Any, x: Any, dim: int) -> Any:
    (first, second), (of_first, of_second) = _halves(x, dim), _halves(g, dim)
    s = sigmoid(second)
    steep = slope * ((1 - s) * s)
    return cat([of_second * steep, of_first * steep + of_second * first * steep * (1 - 2 * s)], dim)


gated_slopes_ = composite(
    "gated_slopes", _gated_slopes, (_slopes_by_slope, _slopes_by_x), inputs=("slope", "x"), reduce="gated",
    samples=lambda rng, dtype: [
        ((away_from_zero(rng, half, dtype), away_from_zero(rng, shape, dtype)), {"dim": dim})
        for half, shape, dim in (((3, 2), (3, 4), 1), ((2, 2, 3), (2, 4, 3), 1), ((1,), (2,), 0))
    ],
    doc="The gradient of gated halves: g s, and g a s (1 - s), s the sigmoid of the second half.",
)  # fmt: skip

gated_ = composite(
    "gated", _gated, (lambda g, x, dim: gated_slopes_(g, x, dim=dim),), inputs=("x",), reduce="gated", node_name="Glu",
    samples=join(one(3, 4, dim=1), one(2, 4, 3, dim=1), one(2, dim=0)),
    doc="a s, a the first half along a dimension, s the sigmoid of the second. d/da = s, d/ds = a.",
)  # fmt: skip


def glu(x: Any, dim: int = -1) -> Any:
    """The first half of `x` along a dimension times the sigmoid of the second half.

    Parameters
    ----------
    x : (..., 2 n, ...)
    dim : the dimension.

    Returns
    -------
    tensor : (..., n, ...).

    Raises
    ------
    ShapeError : an odd size, or no dimension.
    IndexRangeError : a dimension that does not exist.

    References
    ----------
    Dauphin and others, Language modeling with gated convolutional networks, 2017.
    """
    if x.ndim == 0:
        raise ShapeError("glu does not support 0-dimensional tensors")
    refuse("glu", x)
    axis = normalize_dim(dim, x.ndim, "glu")
    n = x.shape[axis]
    if n % 2 != 0:
        raise ShapeError(f"Halving dimension must be even, but dimension {axis} is size {n}")
    return gated_(x, dim=axis)


@accept_numpy_names
def softmin(x: Any, dim: int | None = None, *, dtype: Any = None) -> Any:
    """The softmax of -x.

    Parameters
    ----------
    x : (...), of floats.
    dim : the dimension.
    dtype : to which `x` is converted first, and that of the result.

    Raises
    ------
    IndexRangeError : a dimension that does not exist.
    """
    return softmax(-x, dim, dtype=dtype)


__all__ = [
    "glu", "hardshrink", "hardsigmoid", "hardswish", "prelu", "softmin", "softshrink", "softsign", "tanhshrink",
    "threshold",
]  # fmt: skip
