"""Fits for the inverse trigonometric functions; see `tests.oracle.fit`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["targets"]


def targets() -> list[tuple[str, str, Callable[[Any], Any], Any, Any, int, Callable[[Any], Any]]]:
    """Return (name, what it approximates, function, low, high, degree, weight) of every polynomial."""
    import mpmath as mp

    def asin_rest(z: Any) -> Any:
        if z < 1e-8:
            return mp.mpf(1) / 6 + 3 * z / 40 + 5 * z * z / 112
        return (mp.asin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z

    def atan_rest(z: Any) -> Any:
        if z < 1e-8:
            return -mp.mpf(1) / 3 + z / 5 - z * z / 7
        return (mp.atan(mp.sqrt(z)) / mp.sqrt(z) - 1) / z

    top = mp.mpf("0.2505")
    linear = lambda z: z + mp.mpf(10) ** -6  # noqa: E731
    return [
        ("ASIN_64", "(asin(s)/s - 1) / z, z = s^2, |s| <= 1/2", asin_rest, 0, top, 12, linear),
        ("ASIN_32", "the same, for float32", asin_rest, 0, top, 4, linear),
        ("ATAN_64", "(atan(u)/u - 1) / z, z = u^2, |u| <= 1/2", atan_rest, 0, top, 11, linear),
        ("ATAN_32", "the same, for float32", atan_rest, 0, top, 4, linear),
    ]
