"""Elementwise functions of the array API standard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from common.api import typed
from common.core.errors import ArgumentError
from common.ops import functional
from common.tensor.base import NUMBERS, TensorBase
from common.tensor.create import operand


def _same(names: str) -> dict[str, str]:
    return {name: name for name in names.split()}


#: Name in the standard -> name here, where they differ.
_ONE = {
    **_same(
        "abs acos acosh asin asinh atan atanh ceil cos cosh exp expm1 floor isfinite isinf isnan log log1p log2 log10 "
        "logical_not reciprocal round sign signbit sin sinh square sqrt tan tanh trunc"
    ),
    "bitwise_invert": "bitwise_not", "negative": "neg",
}  # fmt: skip
_TWO = {
    **_same(
        "add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign floor_divide "
        "greater_equal hypot less_equal logaddexp logical_and logical_or logical_xor maximum minimum nextafter "
        "not_equal pow remainder"
    ),
    "divide": "div", "equal": "eq", "greater": "gt", "less": "lt", "multiply": "mul", "subtract": "sub",
}  # fmt: skip
__all__ = list(_ONE) + list(_TWO) + ["clip", "conj", "imag", "positive", "real", "where"]


def promoted(*operands: Any) -> list[Any]:
    """Tensors in the dtype that the standard gives them: those without dimensions count as much as others."""
    if all(isinstance(x, NUMBERS) for x in operands):
        raise ArgumentError("one of the operands must be an array")
    found = [operand(x, *operands) for x in operands]
    kinds = [x.dtype for x in found if isinstance(x, TensorBase)]
    target = kinds[0]
    for kind in kinds[1:]:
        target = typed.promote_types(target, kind)
    return [x.to(target) if isinstance(x, TensorBase) and x.dtype != target else x for x in found]


def _of_one(name: str, ours: str) -> Callable[..., Any]:
    def function(x: Any, /) -> Any:
        return getattr(functional, ours)(operand(x, x))

    return _titled(function, name, ours)


def _of_two(name: str, ours: str) -> Callable[..., Any]:
    def function(x1: Any, x2: Any, /) -> Any:
        return getattr(functional, ours)(*promoted(x1, x2))

    return _titled(function, name, ours)


def _titled(function: Callable[..., Any], name: str, ours: str) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The standard's `{name}`: `{ours}` of each element."
    return function


globals().update({name: _of_one(name, ours) for name, ours in _ONE.items()})
globals().update({name: _of_two(name, ours) for name, ours in _TWO.items()})


def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """Elements between bounds, in the dtype of `x`.

    Parameters
    ----------
    x : (...).
    min, max : numbers, or tensors that broadcast with `x`; None for no bound.
    """
    x = operand(x, x)
    for bound, function in ((min, functional.maximum), (max, functional.minimum)):
        if bound is not None:
            limit = bound if isinstance(bound, NUMBERS) else operand(bound).to(x.dtype)
            x = function(x, limit).to(x.dtype)
    return x if min is not None or max is not None else functional.clone(x)


def positive(x: Any, /) -> Any:
    """A copy of `x`."""
    return functional.clone(operand(x, x))


def conj(x: Any, /) -> Any:
    """A copy of `x`, whose elements are real."""
    return positive(x)


def real(x: Any, /) -> Any:
    """A copy of `x`, whose elements are real."""
    return positive(x)


def imag(x: Any, /) -> Any:
    """Zeros: the elements of `x` are real."""
    return functional.zeros_like(operand(x, x))


def where(condition: Any, x1: Any, x2: Any, /) -> Any:
    """Elements of `x1` where the condition holds, else of `x2`; shapes broadcast.

    Parameters
    ----------
    condition : (...) bool.
    x1, x2 : (...) tensors or numbers.
    """
    if isinstance(x1, NUMBERS) and isinstance(x2, NUMBERS):
        x1 = operand(x1, x1)
    return functional.where(operand(condition, condition), *promoted(x1, x2))
