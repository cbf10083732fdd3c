"""Evaluation of polynomials and the small exact steps that several elementary functions share."""

from __future__ import annotations

from collections.abc import Sequence

from common.compiler.primitives import Value, bits, constant, from_bits, select

__all__ = ["at_least", "at_most", "blended", "horner", "short", "two_sum"]


def horner(x: Value, coefficients: Sequence[float]) -> Value:
    """Return ``c[0] + x (c[1] + x (c[2] + ...))``, one product and one sum per degree.

    In a vectorised loop the products of several iterations overlap, so that the form with the fewest
    operations is the fastest (``python -m benchmarks.accuracy`` times the functions).
    """
    result = constant(coefficients[-1], x)
    for coefficient in coefficients[-2::-1]:
        result = result * x + coefficient
    return result


def blended(t: Value, where: Sequence[Value], tables: Sequence[Sequence[float]]) -> Value:
    """Return the polynomial in t of the first table whose condition holds, else of the last one.

    Choosing coefficient by coefficient costs less than the polynomials one by one.
    """

    def chosen(i: int) -> Value:
        result = constant(tables[-1][i] if i < len(tables[-1]) else 0.0, t)
        for condition, table in zip(where[::-1], tables[-2::-1], strict=True):
            result = select(condition, constant(table[i] if i < len(table) else 0.0, t), result)
        return result

    degree = max(map(len, tables)) - 1
    result = chosen(degree)
    for i in range(degree - 1, -1, -1):
        result = result * t + chosen(i)
    return result


def at_most(x: Value, bound: float) -> Value:
    """Return ``min(x, bound)``; a NaN stays a NaN (in this operand order LLVM needs one instruction)."""
    return select(x > bound, bound, x)


def at_least(x: Value, bound: float) -> Value:
    """Return ``max(x, bound)``; a NaN stays a NaN."""
    return select(x < bound, bound, x)


def short(x: Value) -> Value:
    """Return a float64 cut to its leading 26 bits: the product of two such numbers is exact."""
    return from_bits(bits(x) & -(1 << 27))


def two_sum(x: Value, y: Value) -> tuple[Value, Value]:
    """Return ``x + y`` rounded, and what rounding lost, exactly (Knuth)."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)
