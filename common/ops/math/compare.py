"""Comparisons, logic, selection and extrema."""

from __future__ import annotations

from typing import Any

from common.compiler.primitives import constant, select
from common.core.dispatch import called
from common.core.dtypes import float64
from common.core.errors import ArgumentError
from common.core.op import Op
from common.core.python_numbers import require_held
from common.kernels.math import elementary as e
from common.ops._define import elementwise

eq = elementwise("eq", lambda a, b: a == b, doc="a == b.", result="bool")
ne = elementwise("ne", lambda a, b: a != b, doc="a != b; true for nan.", result="bool")
lt = elementwise("lt", lambda a, b: a < b, doc="a < b.", result="bool")
le = elementwise("le", lambda a, b: a <= b, doc="a <= b.", result="bool")
gt = elementwise("gt", lambda a, b: a > b, doc="a > b.", result="bool")
ge = elementwise("ge", lambda a, b: a >= b, doc="a >= b.", result="bool")

logical_and = elementwise("logical_and", lambda a, b: a & b, doc="a and b, of truth values.", domain="bool")
logical_or = elementwise("logical_or", lambda a, b: a | b, doc="a or b, of truth values.", domain="bool")
logical_xor = elementwise("logical_xor", lambda a, b: a ^ b, doc="a != b, of truth values.", domain="bool")
logical_not = elementwise("logical_not", lambda x: ~x, doc="not x, of the truth value.", domain="bool")
isnan = elementwise("isnan", lambda x: x != x, doc="Whether x is nan.", result="bool")

where: Op = elementwise(
    "where", lambda condition, a, b: select(condition, a, b),
    (None,
     lambda g, condition: where(condition, g, 0),
     lambda g, condition: where(condition, 0, g)),
    doc="a where condition holds, b elsewhere; the other one's nan does not matter, in the gradient either.",
)  # fmt: skip

maximum = elementwise(
    "maximum", lambda a, b: e.maximum(a, b),
    (lambda g, a, b: where(lt(a, b), 0, where(eq(a, b), g * 0.5, g)),
     lambda g, a, b: where(lt(b, a), 0, where(eq(a, b), g * 0.5, g))),
    doc="The larger one; nan if either is nan; +0 is larger than -0. Ties share the gradient evenly.",
)  # fmt: skip

minimum = elementwise(
    "minimum", lambda a, b: e.minimum(a, b),
    (lambda g, a, b: where(lt(b, a), 0, where(eq(a, b), g * 0.5, g)),
     lambda g, a, b: where(lt(a, b), 0, where(eq(a, b), g * 0.5, g))),
    doc="The smaller one; nan if either is nan; -0 is smaller than +0. Ties share the gradient evenly.",
)  # fmt: skip

at_least = elementwise(
    "clamp_min", lambda x, low: e.maximum(x, low),
    (lambda g, x, low: where(ge(x, low), g, 0),
     lambda g, x, low: where(lt(x, low), g, 0)),
    doc="maximum(x, low). d/dx = 1 where x >= low, d/dlow = 1 where x < low.",
)  # fmt: skip

at_most = elementwise(
    "clamp_max", lambda x, high: e.minimum(x, high),
    (lambda g, x, high: where(le(x, high), g, 0),
     lambda g, x, high: where(gt(x, high), g, 0)),
    doc="minimum(x, high). d/dx = 1 where x <= high, d/dhigh = 1 where x > high.",
)  # fmt: skip

clamp_both = elementwise(
    "clamp", lambda x, low, high: e.clamp(x, low, high),
    (lambda g, x, low, high: where(logical_and(ge(x, low), le(x, high)), g, 0),
     lambda g, x, low, high: where(logical_and(lt(x, low), le(low, high)), g, 0),
     lambda g, x, low, high: where(gt(maximum(x, low), high), g, 0)),
    doc="minimum(maximum(x, low), high). d/dx = 1 where low <= x <= high, d/dhigh = 1 where maximum(x, low) > high, "
        "d/dlow = 1 elsewhere below low.", refuses="b",
)  # fmt: skip

relu = elementwise(
    "relu", lambda x: select(x <= 0, constant(0, x), x), (lambda g, y: where(gt(y, 0), g, 0),),
    doc="x where x > 0, nan where x is nan, else +0. d/dx = 1 where y > 0, so 0 at 0.", refuses="b",
    refusals=("Boolean inputs not supported for relu.",),
)  # fmt: skip


def _check_bounds(op: str, x: Any, *bounds: Any) -> None:
    """Refuse ints that the integers of `x` do not hold; a float makes floats of them."""
    kinds = set(map(type, bounds))
    if int in kinds and float not in kinds:
        require_held(op, getattr(x, "dtype", float64), *(n for n in bounds if type(n) is int))


def clamp_min(x: Any, min: Any) -> Any:
    """The larger one of `x` and a bound: ``clamp(x, min=min)``.

    Parameters
    ----------
    x : (...)
    min : a number or tensor.

    Raises
    ------
    ArgumentError : the integers of `x` do not hold the bound.
    """
    _check_bounds("clamp_min", x, min)
    return at_least(x, min)


def clamp_max(x: Any, max: Any) -> Any:
    """The smaller one of `x` and a bound: ``clamp(x, max=max)``.

    Parameters
    ----------
    x : (...)
    max : a number or tensor.

    Raises
    ------
    ArgumentError : the integers of `x` do not hold the bound.
    """
    _check_bounds("clamp_max", x, max)
    return at_most(x, max)


def clamp(x: Any, min: float | None = None, max: float | None = None) -> Any:
    """`x` limited to [min, max]; where both bounds cross, `max` wins.

    Parameters
    ----------
    x : (...)
    min, max : bounds; None for none.

    Raises
    ------
    ArgumentError : neither bound is given, or the integers of `x` do not hold one.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.clamp(tw.tensor([-2.0, 0.5, 2.0]), -1, 1)
    tensor([-1.0000,  0.5000,  1.0000])
    """
    if min is None and max is None:
        raise ArgumentError("clamp(): at least one of 'min' or 'max' must not be None")
    _check_bounds("clamp", x, min, max)
    if min is not None and max is not None:
        return clamp_both(x, min, max)
    y, bound = (at_least(x, min), min) if max is None else (at_most(x, max), max)
    return called(y, f"ClampBackward{int(isinstance(bound, (int, float)))}")


def clip(x: Any, min: float | None = None, max: float | None = None) -> Any:
    """Another name of `clamp`.

    Parameters
    ----------
    x, min, max : see `clamp`.
    """
    return clamp(x, min, max)


__all__ = [
    "clamp", "clamp_max", "clamp_min", "clip",
    "eq", "ge", "gt", "isnan", "le", "logical_and", "logical_not", "logical_or", "logical_xor", "lt",
    "maximum", "minimum", "ne", "relu",
]  # fmt: skip
