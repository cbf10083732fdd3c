"""Special functions and functions made of logarithms; accuracy figures stand in `common.kernels`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from common.compiler.compile import add_namespace
from common.compiler.primitives import constant, evaluate, select
from common.core.dispatch import called
from common.core.dtypes import compute_dtypes
from common.core.errors import ArgumentError
from common.core.int_arguments import number
from common.core.op import NativeCall, Op
from common.core.spec import Spec, numel
from common.kernels.math import elementary as e
from common.kernels.math.gamma import polygamma_of_order
from common.ops._define import elementwise, kernel
from common.ops._samples import inside_unit, positive, probable
from common.ops.math.arithmetic import abs, mul, sqrt
from common.ops.math.compare import clamp, eq, le, logical_and, lt, where
from common.ops.math.transcendental import exp, log, sin

_HALF_ROOT_PI = math.sqrt(math.pi) / 2
#: Below it sin(t) / t is 1, and its derivative -t / 3, where the quotients of the general form cancel or overflow.
_NEAR = 1e-9

erfc = elementwise(
    "erfc", e.erfc, (lambda g, x: g * (-1 / _HALF_ROOT_PI * exp(-(x * x))),),
    doc="1 - erf(x), without cancellation. d/dx = -2 / sqrt(pi) e^(-x^2).", domain="float", costly=True,
)  # fmt: skip
erfinv = elementwise(
    "erfinv", e.erfinv, (lambda g, y: g * (_HALF_ROOT_PI * exp(y * y)),),
    doc="The y with erf(y) = x; infinite at -1 and 1, nan beyond. d/dx = sqrt(pi) / 2 e^(y^2).", domain="float",
    costly=True, draw=inside_unit,
)  # fmt: skip
lgamma = elementwise(
    "lgamma", e.lgamma, (lambda g, x: g * digamma(x),),
    doc="log |gamma(x)|; inf at 0 and at negative integers. d/dx = digamma(x).", domain="float", costly=True,
    draw=positive,
)  # fmt: skip
digamma: Op = elementwise(
    "digamma", e.digamma, (lambda g, x: g * polygamma(1, x),),
    doc="Derivative of lgamma; -inf at 0, nan at negative integers. d/dx = polygamma(1, x).", domain="float",
    costly=True, draw=positive,
)  # fmt: skip


def one_by_one(name: str, x: Spec) -> list[NativeCall]:
    """The call of a scalar definition that is no op, for each element of an array."""
    source = (
        f"def {name}_all(bufs, args):\n    wide(1)\n    x = buffer(bufs, 0, {x.dtype.name})\n"
        f"    y = buffer(bufs, 1, {x.dtype.name})\n    for i in range(args[0]):\n"
        f"        y[i] = {name}(x[i])\n    return 0\n"
    )
    return [NativeCall(source, f"{name}_all", (numel(x.shape),))]


def _polygamma_calls(inputs: Any, outputs: Any, attrs: dict[str, Any]) -> list[NativeCall]:
    return one_by_one(f"polygamma_{attrs['n']}", inputs[0])


def _polygamma_scalar(name: str) -> Any:
    """The scalar definition that a kernel calls polygamma_<order>."""
    prefix, _, order = name.partition("_")
    return polygamma_of_order(int(order)) if prefix == "polygamma" and order.isdecimal() else None


add_namespace(_polygamma_scalar)

_polygamma = kernel(
    "polygamma", ("x",), lambda x, n: Spec(x.shape, x.dtype), _polygamma_calls,
    lambda x, n: evaluate(polygamma_of_order(n), x), (lambda g, x, n: g * polygamma(n + 1, x),),
    doc="Derivative number n of digamma, n >= 1. d/dx = polygamma(n + 1, x).", attrs=("n",),
    samples=lambda rng, dtype: [((positive(rng, (4, 3), dtype),), {"n": n}) for n in (1, 2, 3)],
)  # fmt: skip


#: Of `polygamma`: from 171 on n! is more than a float64 can be.
MOST_DERIVATIVES = 1000


def polygamma(n: int, x: Any) -> Any:
    """Derivative number `n` of `digamma`; for n = 0 `digamma` itself.

    Parameters
    ----------
    n : an int >= 0, not a tensor.
    x : (...); ints become float32.

    Raises
    ------
    ArgumentError : n is no int, negative, or more than 1000.
    """
    n = number(n)
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)):
        raise ArgumentError(f"polygamma(): argument 'n' must be int, not {type(n).__name__}")
    if n < 0:
        raise ArgumentError(f"polygamma(n, x) does not support negative n, got {n}")
    if n > MOST_DERIVATIVES:
        raise ArgumentError(f"polygamma(): argument 'n' must be at most {MOST_DERIVATIVES}, got {n}: n! is infinite")
    return called(digamma(x), "PolygammaBackward0") if n == 0 else _polygamma(_floats(x), n=int(n))


def _floats(x: Any) -> Any:
    """`x` in the dtype in which float functions compute."""
    from common.ops.math.cast import to
    from common.tensor.base import spec_of

    spec = spec_of(x)
    _, dtype, _ = compute_dtypes(digamma, (spec,))
    return x if spec.dtype == dtype else to(x, dtype=dtype, x_dtype=spec.dtype)


xlogy: Op = elementwise(
    "xlogy", lambda a, b: e.xlogy(a, b),
    (lambda g, a, b: where(logical_and(eq(a, 0), le(b, 0)), 0, xlogy(g, b)),
     lambda g, a, b: g * (a / b)),
    doc="a log(b), and 0 where a is 0 and b not nan. d/da = log(b), 0 where a = 0 and b <= 0; d/db = a / b.",
    domain="float", costly=True, draw=positive,
)  # fmt: skip
xlog1py: Op = elementwise(
    "xlog1py", lambda a, b: select((a == 0.0) & (b == b), constant(0.0, a), a * e.log1p(b)),
    (lambda g, a, b: where(logical_and(eq(a, 0), le(b, -1)), 0, xlog1py(g, b)),
     lambda g, a, b: g * a / (1 + b)),
    doc="a log1p(b), and 0 where a is 0 and b not nan. d/da = log1p(b), 0 where a = 0 and b <= -1; "
        "d/db = a / (1 + b).",
    domain="float", costly=True, draw=positive, node_name="SpecialXlog1Py",
)  # fmt: skip
entr: Op = elementwise(
    "entr", lambda x: select(x > 0.0, -(x * e.log(x)), select(x < 0.0, constant(-math.inf, x), x * 0.0)),
    (lambda g, x: g * (-1 - log(x)),),
    doc="-x log(x), 0 at 0 and -inf below. d/dx = -1 - log(x): inf at 0, nan below.", domain="float", costly=True,
    draw=positive, node_name="SpecialEntr",
)  # fmt: skip


def sinc(x: Any) -> Any:
    """``sin(t) / t`` for t = pi x rounded, and 1 at 0.

    Parameters
    ----------
    x : (...); ints become float32.
    """
    turns = mul(_floats(x), math.pi)
    near = lt(abs(turns), _NEAR)
    far = where(near, 1, turns)
    return where(near, 1 - turns * turns * (1 / 6), sin(far) / far)


def _logit_rule(g: Any, x: Any) -> Any:
    rest = 1 - x
    step = g / (x / rest)
    product = x * rest  # positive inside, negative outside; of its root, which is nan there, the gradient is one
    return where(lt(0, product), step / rest - -step * (x / rest / rest), g / sqrt(product))


logit_ = elementwise(
    "logit", lambda x: e.log(x / (1.0 - x)), (_logit_rule,),
    doc="log(x / (1 - x)); nan outside [0, 1]. d/dx = 1 / (x (1 - x)).", domain="float", costly=True, draw=probable,
)  # fmt: skip


def logit(x: Any, eps: float | None = None) -> Any:
    """``log(x / (1 - x))``, the inverse of `sigmoid`; nan outside [0, 1] unless `eps` is given.

    Parameters
    ----------
    x : (...); ints become float32.
    eps : x is limited to [eps, 1 - eps] first.
    """
    return logit_(x if eps is None else clamp(_floats(x), eps, 1 - eps))


def rad2deg(x: Any) -> Any:
    """Radians as degrees: one product with 180 / pi. ints become float32.

    Parameters
    ----------
    x : (...) angles.
    """
    return mul(_floats(x), 180 / math.pi)


def deg2rad(x: Any) -> Any:
    """Degrees as radians: one product with pi / 180. ints become float32.

    Parameters
    ----------
    x : (...) angles.
    """
    return mul(_floats(x), math.pi / 180)


__all__ = ["deg2rad", "digamma", "erfc", "erfinv", "lgamma", "logit", "polygamma", "rad2deg", "sinc", "xlogy"]
