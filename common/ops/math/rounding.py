"""Rounding to whole numbers: exact, with a gradient of zero almost everywhere. Integers are whole already."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from common.compiler.primitives import Value, is_float
from common.core.errors import DTypeError
from common.core.op import Op
from common.kernels.math import exact
from common.ops._define import elementwise
from common.ops.math.arithmetic import zeros_like


def _whole(function: Callable[[Value], Value]) -> Callable[[Value], Value]:
    return lambda x: function(x) if is_float(x) else x


floor = elementwise("floor", _whole(exact.floor), (lambda g: zeros_like(g),), refuses="b",
                    doc="The largest whole number <= x. d/dx = 0.")  # fmt: skip
ceil = elementwise("ceil", _whole(exact.ceil), (lambda g: zeros_like(g),), refuses="b",
                   doc="The smallest whole number >= x. d/dx = 0.")  # fmt: skip
trunc = elementwise("trunc", _whole(exact.trunc), (lambda g: zeros_like(g),), refuses="b",
                    doc="The whole number next to x towards zero. d/dx = 0.")  # fmt: skip
frac = elementwise("frac", exact.frac, (lambda g: g,), refuses="biu",
                   doc="x - trunc(x); nan for the infinities. d/dx = 1.")  # fmt: skip

_round = elementwise("round", _whole(exact.rint), (lambda g: zeros_like(g),), refuses="b",
                     doc="The whole number nearest to x, ties to even. d/dx = 0.")  # fmt: skip
_round_up = elementwise(
    "round_decimals", lambda x, scale: exact.rint(x * scale) / scale,
    (lambda g: zeros_like(g),
     lambda g, y, scale: -g * (y / scale)),
    doc="round(x * scale) / scale. d/dx = 0, d/dscale = -y / scale.", domain="float", node_name="Round", costly=True,
)  # fmt: skip
_round_down = elementwise(
    "round_tens", lambda x, scale: exact.rint(x / scale) * scale,
    (lambda g: zeros_like(g),
     lambda g, y, scale: g * (y / scale)),
    doc="round(x / scale) * scale. d/dx = 0, d/dscale = y / scale.", domain="float", node_name="Round", costly=True,
)  # fmt: skip


def round(x: Any, *, decimals: int = 0) -> Any:
    """Round to the nearest number with so many decimals, ties to even.

    Parameters
    ----------
    x : (...); ints only with `decimals` 0.
    decimals : digits after the point that are kept; negative ones are before it. The result is
        ``round(x * 10**decimals) / 10**decimals``, each step rounded, as in PyTorch.

    Raises
    ------
    DTypeError : ints with decimals, or bools.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.round(tw.tensor([0.5, 1.5, -2.5])), tw.round(tw.tensor([1234.567]), decimals=-2)
    (tensor([ 0.,  2., -2.]), tensor([1200.]))
    """
    if decimals == 0:
        return _round(x)
    if x.dtype.kind != "f":
        raise DTypeError(f"round(): decimals are not implemented for {x.dtype}; convert it with .to() first")
    scale = 10.0 ** abs(decimals) if abs(decimals) <= 308 else math.inf
    return _round_up(x, scale) if decimals > 0 else _round_down(x, scale)


fix: Op = trunc

__all__ = ["ceil", "fix", "floor", "frac", "round", "trunc"]
