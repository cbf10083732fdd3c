"""Special functions that SciPy computes, the same call from both engines; and compositions of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from common.compiler.compile import add_namespace
from common.compiler.host_kernels import host_call
from common.compiler.primitives import evaluate
from common.core.dispatch import apply
from common.core.dtypes import default_float, float32, promote, refuse
from common.core.errors import ArgumentError
from common.core.int_arguments import integer
from common.core.op import NativeCall, Op
from common.core.shapes import broadcast_shapes
from common.core.sizes import same_shape
from common.core.spec import Spec, numel
from common.kernels.math import bessel, incomplete_gamma
from common.kernels.math import narrow_special as narrow_
from common.kernels.math.narrow_special import LIMIT
from common.ops._define import Rules, elementwise, kernel
from common.ops._samples import Draw, Samples, away_from_zero, inside_unit, positive
from common.ops.create.creation import arange
from common.ops.index.written_values import as_value
from common.ops.math.arithmetic import sign
from common.ops.math.cast import to
from common.ops.math.compare import eq, where
from common.ops.math.special_functions import _floats, erfc, lgamma, one_by_one
from common.ops.math.transcendental import exp, log
from common.ops.reduce.reductions import sum as total
from common.ops.shape.view import expand, unsqueeze
from common.tensor.base import TensorBase
from common.tensor.create import lift

BY_SCIPY = "common.kernels.math.scipy_special", "special_function"


def _drawn(inputs: tuple[str, ...], draws: Sequence[Draw]) -> Samples:
    def samples(rng: Any, dtype: Any) -> list[Any]:
        return [(tuple(draw(rng, shape, dtype) for draw in draws), {}) for shape in ((4, 3), (), (5,))]

    return samples


def scipys(
    name: str, inputs: tuple[str, ...], rules: Rules, *draws: Draw, function: str = "",
    by: tuple[str, str] = BY_SCIPY, narrow: Callable[..., Any] | None = None,
    within: Callable[..., Any] | None = None, limit: float = LIMIT, written: str = "", doc: str,
) -> Op:  # fmt: skip
    """Define an op of operands of one shape by a function of `scipy.special`.

    Parameters
    ----------
    draws : make the operands for the tests.
    function : its name there, by default that of the op.
    by : module and name of what computes it; its last argument is the name.
    narrow : a scalar definition of results of float32.
    within : the same definition where the last operand is up to `limit`, for blocks that have no others.
    written : the module that writes native source for the usual case.
    """
    (module, computing), called = by, function or name
    if narrow is not None:
        add_namespace({f"{name}_of_float32": narrow, f"{name}_within": within}.get)

    def native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
        if narrow is not None and specs[0].dtype == float32:
            if within is not None:
                return in_blocks(f"{name}_of_float32", f"{name}_within", specs, limit)
            return one_by_one(f"{name}_of_float32", specs[0])
        return [host_call(module, computing, specs, outs, [called], written)]

    def oracle(*arrays: np.ndarray) -> np.ndarray:
        if narrow is not None and arrays[0].dtype == float32:
            return np.asarray(evaluate(narrow, *arrays))
        y: np.ndarray = getattr(import_module(module), computing)(*arrays, called)
        return y

    return kernel(name, inputs, lambda *specs: Spec(specs[0].shape, specs[0].dtype), native, oracle, rules, doc=doc,
                  samples=_drawn(inputs, draws))  # fmt: skip


def in_blocks(general: str, within: str, specs: Sequence[Spec], limit: float) -> list[NativeCall]:
    """The call of a scalar definition for each element: of `within` in blocks whose last operand is up to a limit."""
    dtype, count = specs[0].dtype.name, len(specs)
    given = ", ".join(f"x{i}[i]" for i in range(count))
    buffers = "".join(f"    x{i} = buffer(bufs, {i}, {dtype})\n" for i in range(count))
    source = (
        f"def {general}_all(bufs, args):\n    wide(1)\n{buffers}    y = buffer(bufs, {count}, {dtype})\n"
        f"    for b in range(0, args[0], 512):\n        end = min(args[0], b + 512)\n        beyond = 0\n"
        f"        for i in range(b, end):\n"
        f"            beyond |= to_int64(abs(x{count - 1}[i]) > {dtype}({limit}))\n        if beyond == 0:\n"
        f"            for i in range(b, end):\n                y[i] = {within}({given})\n        else:\n"
        f"            for i in range(b, end):\n                y[i] = {general}({given})\n    return 0\n"
    )
    return [NativeCall(source, f"{general}_all", (numel(specs[0].shape),))]


def _over(y: Any, x: Any, at_zero: float) -> Any:
    """y / x, and its limit at 0."""
    zero = eq(x, 0)
    return where(zero, at_zero, y / where(zero, 1, x))


i0_: Op = scipys(
    "i0", ("x",), (lambda g, x: g * i1_(x),), away_from_zero, narrow=bessel.i0,
    doc="The modified Bessel function of the first kind and order 0. d/dx = i1(x).",
)  # fmt: skip
i1_: Op = scipys(
    "i1", ("x",), (lambda g, y, x: g * (i0_(x) - _over(y, x, 0.5)),), away_from_zero, narrow=bessel.i1,
    doc="The modified Bessel function of the first kind and order 1. d/dx = i0(x) - y / x.",
)  # fmt: skip
i0e_ = elementwise(
    "i0e", bessel.i0e, (lambda g, y, x: g * (i1e_(x) - sign(x) * y),),
    doc="i0(x) e^-|x|. d/dx = i1e(x) - sign(x) y.", domain="float", costly=True, draw=away_from_zero,
)  # fmt: skip
i1e_: Op = elementwise(
    "i1e", bessel.i1e, (lambda g, y, x: g * (i0e_(x) - sign(x) * y - _over(y, x, 0.5)),),
    doc="i1(x) e^-|x|. d/dx = i0e(x) - y (sign(x) + 1 / x).", domain="float", costly=True, draw=away_from_zero,
)  # fmt: skip
erfcx_: Op = scipys(
    "erfcx", ("x",), (lambda g, y, x: g * (2 * x * y - 2 / math.sqrt(math.pi)),), away_from_zero,
    narrow=narrow_.erfcx, doc="e^(x^2) erfc(x). d/dx = 2 x y - 2 / sqrt(pi).",
)  # fmt: skip
ndtri_: Op = scipys(
    "ndtri", ("x",), (lambda g, y: g * (math.sqrt(2 * math.pi) * exp(y * y * 0.5)),),
    lambda rng, shape, dtype: np.asarray(np.abs(inside_unit(rng, shape, dtype))), narrow=narrow_.ndtri,
    doc="The y at which the standard normal distribution reaches x. d/dx = sqrt(2 pi) e^(y^2 / 2).",
)  # fmt: skip
log_ndtr_: Op = scipys(
    "log_ndtr", ("x",), (lambda g, x: g * (math.sqrt(2 / math.pi) / erfcx_(x * -math.sqrt(0.5))),), away_from_zero,
    narrow=narrow_.log_ndtr,
    doc="The logarithm of ndtr(x), also far below 0. d/dx = sqrt(2 / pi) / erfcx(-x / sqrt(2)).",
)  # fmt: skip
zeta_: Op = scipys(
    "zeta", ("x", "q"), (None, lambda g, x, q: -g * x * zeta_(x + 1, q)),
    lambda rng, shape, dtype: np.asarray(positive(rng, shape, dtype) + np.asarray(1.5, dtype)), positive,
    doc="Hurwitz' zeta function, the sum of (k + q)^-x over k >= 0. d/dq = -x zeta(x + 1, q); none by x.",
)  # fmt: skip


def _density(a: Any, x: Any) -> Any:
    return exp((a - 1) * log(x) - x - lgamma(a))


gammainc_: Op = scipys(
    "gammainc", ("a", "x"), (None, lambda g, a, x: g * _density(a, x)), positive, positive,
    narrow=incomplete_gamma.gammainc, within=incomplete_gamma.gammainc_within, limit=incomplete_gamma.LIMIT,
    doc="The lower incomplete gamma function over gamma(a). d/dx = x^(a - 1) e^-x / gamma(a); none by a.",
)  # fmt: skip
gammaincc_: Op = scipys(
    "gammaincc", ("a", "x"), (None, lambda g, a, x: -g * _density(a, x)), positive, positive,
    narrow=incomplete_gamma.gammaincc, within=incomplete_gamma.gammaincc_within, limit=incomplete_gamma.LIMIT,
    doc="The upper incomplete gamma function over gamma(a). d/dx = -x^(a - 1) e^-x / gamma(a); none by a.",
)  # fmt: skip
j0_: Op = scipys(
    "bessel_j0", ("x",), (lambda g, x: -g * j1_(x),), away_from_zero, function="j0",
    narrow=narrow_.j0, within=narrow_.j0_within,
    doc="The Bessel function of the first kind and order 0. d/dx = -bessel_j1(x).",
)  # fmt: skip
j1_: Op = scipys(
    "bessel_j1", ("x",), (lambda g, y, x: g * (j0_(x) - _over(y, x, 0.5)),), away_from_zero, function="j1",
    narrow=narrow_.j1, within=narrow_.j1_within,
    doc="The Bessel function of the first kind and order 1. d/dx = bessel_j0(x) - y / x.",
)  # fmt: skip
y0_: Op = scipys(
    "bessel_y0", ("x",), (lambda g, x: -g * y1_(x),), positive, function="y0",
    narrow=narrow_.y0, within=narrow_.y0_within,
    doc="The Bessel function of the second kind and order 0. d/dx = -bessel_y1(x).",
)  # fmt: skip
y1_: Op = scipys(
    "bessel_y1", ("x",), (lambda g, y, x: g * (y0_(x) - y / x),), positive, function="y1",
    narrow=narrow_.y1, within=narrow_.y1_within,
    doc="The Bessel function of the second kind and order 1. d/dx = bessel_y0(x) - y / x.",
)  # fmt: skip
k0_: Op = scipys(
    "modified_bessel_k0", ("x",), (lambda g, x: -g * k1_(x),), positive, function="k0",
    doc="The modified Bessel function of the second kind and order 0. d/dx = -modified_bessel_k1(x).",
)  # fmt: skip
k1_: Op = scipys(
    "modified_bessel_k1", ("x",), (lambda g, y, x: -g * (k0_(x) + y / x),), positive, function="k1",
    doc="The modified Bessel function of the second kind and order 1. d/dx = -modified_bessel_k0(x) - y / x.",
)  # fmt: skip
k0e_: Op = scipys(
    "scaled_modified_bessel_k0", ("x",), (lambda g, y, x: g * (y - k1e_(x)),), positive, function="k0e",
    doc="modified_bessel_k0(x) e^x. d/dx = y - scaled_modified_bessel_k1(x).",
)  # fmt: skip
k1e_: Op = scipys(
    "scaled_modified_bessel_k1", ("x",), (lambda g, y, x: g * (y - k0e_(x) - y / x),), positive, function="k1e",
    doc="modified_bessel_k1(x) e^x. d/dx = y - scaled_modified_bessel_k0(x) - y / x.",
)  # fmt: skip


def of_one(op: Op) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        return op(_floats(x))

    function.__name__ = op.name
    function.__doc__ = f"{op.doc}\n\n    Parameters\n    ----------\n    x : (...); ints become float32.\n    "
    return function


def pair(op: Op, a: Any, b: Any, of_floats: str = "") -> Any:
    """A function of two operands of one dtype that broadcast; one that takes floats only is named by `of_floats`."""
    tensors = [x for x in (a, b) if isinstance(x, (TensorBase, np.ndarray))]
    like = promote(*(x.dtype for x in tensors)) if len(tensors) == 2 else tensors[0].dtype
    if of_floats:
        refuse(of_floats, Spec((), like))
    like = like if like.kind == "f" else default_float()
    a, b = (
        to(x, dtype=like, x_dtype=x.dtype) if isinstance(x, (TensorBase, np.ndarray)) else as_value(x, like)
        for x in (a, b)
    )
    if not same_shape(a.shape, b.shape):
        shape = broadcast_shapes(a.shape, b.shape, op=op.name)
        a, b = expand(a, shape), expand(b, shape)
    return apply(op, (a, b))


i0 = of_one(i0_)


def igamma(a: Any, b: Any) -> Any:
    """The lower incomplete gamma function over gamma(a).

    Parameters
    ----------
    a : (...), positive.
    b : (...), where; it broadcasts with `a`.
    """
    return pair(gammainc_, a, b, "igamma")


def igammac(a: Any, b: Any) -> Any:
    """The upper incomplete gamma function over gamma(a).

    Parameters
    ----------
    a : (...), positive.
    b : (...), where; it broadcasts with `a`.
    """
    return pair(gammaincc_, a, b, "igammac")


def zeta(a: Any, b: Any) -> Any:
    """Hurwitz' zeta function: the sum of ``(k + b)**-a`` over k >= 0.

    Parameters
    ----------
    a, b : (...), which broadcast; one of them may be a number.
    """
    return pair(zeta_, a, b)


def ndtr(x: Any) -> Any:
    """The standard normal distribution: ``erfc(-x / sqrt(2)) / 2``.

    Parameters
    ----------
    x : (...); ints become float32.
    """
    return erfc(_floats(x) * -math.sqrt(0.5)) * 0.5


def mvlgamma(x: Any, p: int) -> Any:
    """The logarithm of the multivariate gamma function of dimension p.

    Parameters
    ----------
    x : (...), above (p - 1) / 2.
    p : >= 1.
    """
    p = integer(p, "mvlgamma", "p")
    if p < 1:
        raise ArgumentError("p has to be greater than or equal to 1")
    refuse("mvlgamma", x, "b")
    x = _floats(x)
    halves = to(lift(arange(p)), dtype=x.dtype, x_dtype=np.dtype(np.int64)) * -0.5
    return total(lgamma(unsqueeze(x, -1) + halves), -1) + p * (p - 1) / 4 * math.log(math.pi)


def of_one_operand() -> dict[str, Callable[..., Any]]:
    """Functions of one operand by their names in `torch.special`."""
    ops = (i0e_, i1_, i1e_, erfcx_, ndtri_, log_ndtr_, j0_, j1_, y0_, y1_, k0_, k1_, k0e_, k1e_)
    found = {op.name: of_one(op) for op in ops}
    return {**found, "modified_bessel_i0": of_one(i0_), "modified_bessel_i1": of_one(i1_)}


__all__ = ["i0", "igamma", "igammac", "mvlgamma"]
