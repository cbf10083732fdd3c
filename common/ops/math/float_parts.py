"""Floating-point numbers taken apart and put together: frexp, ldexp, nextafter."""

from __future__ import annotations

from typing import Any, NamedTuple

from common.core.dtypes import default_float, int32
from common.core.return_types import returned
from common.kernels.math import float_parts as parts
from common.ops._define import elementwise
from common.ops.index.written_values import of_dtype
from common.ops.math.cast import converted, to
from common.ops.math.logarithms import exp2


@returned("frexp")
class Frexp(NamedTuple):
    """The result of `frexp`.

    Attributes
    ----------
    mantissa : of the dtype of the operand, of magnitude in [1/2, 1), or zero, infinite or nan.
    exponent : int32.
    """

    mantissa: Any
    exponent: Any


exponent_of = elementwise(
    "exponent_of", parts.exponent, refuses="biu",
    doc="The k for which x / 2^k has a magnitude in [1/2, 1), as a float; 0 for 0, infinities and nan.",
)  # fmt: skip

mantissa_of = elementwise(
    "mantissa_of", parts.mantissa, (lambda g, x: g * exp2(-exponent_of(x)),), refuses="biu",
    doc="x / 2^k of magnitude in [1/2, 1); 0, infinities and nan as they are. d/dx = 2^-k.", node_name="Frexp",
)  # fmt: skip

nextafter = elementwise(
    "nextafter", lambda a, b: parts.nextafter(a, b), (lambda g: g, None), refuses="biu",
    doc="The floating-point number next to a on the way to b; b where they are equal; nan if either is. d/da = 1.",
)  # fmt: skip


def frexp(x: Any) -> Frexp:
    """Mantissa and exponent: x = mantissa 2^exponent, the mantissa's magnitude in [1/2, 1) or x itself where that is
    0, infinite or nan.

    Parameters
    ----------
    x : (...), floating point.

    Raises
    ------
    DTypeError : `x` is not floating point.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.frexp(tw.tensor([6.0, -0.25]))
    torch.return_types.frexp(
    mantissa=tensor([ 0.7500, -0.5000]),
    exponent=tensor([ 3, -1], dtype=int32))
    """
    exponent = exponent_of(x)
    return Frexp(mantissa_of(x), to(exponent, dtype=int32, x_dtype=exponent.dtype))


def ldexp(a: Any, b: Any) -> Any:
    """a 2^b, where 2^b is rounded to the dtype of the result first: beyond its exponents it is 0 or infinite.

    Parameters
    ----------
    a : (...); ints become float32.
    b : (...), broadcast.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.ldexp(tw.tensor([1.5, -1.0]), tw.tensor([2, -1]))
    tensor([ 6.0000, -0.5000])
    """
    a = a if "f" in (a.dtype.kind, b.dtype.kind) else converted(a, default_float())
    return a * exp2(b if b.dtype.kind == "f" else of_dtype(b, a.dtype))


__all__ = ["frexp", "ldexp", "nextafter"]
