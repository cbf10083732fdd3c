"""Evaluation of polynomials and the small exact steps that several elementary functions share."""

from __future__ import annotations

from collections.abc import Sequence

from common.native.primitives import Value, constant, select

__all__ = ["at_least", "at_most", "horner"]


def horner(x: Value, coefficients: Sequence[float]) -> Value:
    """Return ``c[0] + x (c[1] + x (c[2] + ...))``, one product and one sum per degree.

    In a vectorised loop the products of several iterations overlap, so that the form with the fewest
    operations is the fastest (``python -m benchmarks.accuracy`` times the functions).
    """
    result = constant(coefficients[-1], x)
    for coefficient in coefficients[-2::-1]:
        result = result * x + coefficient
    return result


def at_most(x: Value, bound: float) -> Value:
    """Return ``min(x, bound)``; a NaN stays a NaN (in this operand order LLVM needs one instruction)."""
    return select(x > bound, bound, x)


def at_least(x: Value, bound: float) -> Value:
    """Return ``max(x, bound)``; a NaN stays a NaN."""
    return select(x < bound, bound, x)
