"""Fits for erfc and erfinv; see `tests.oracle.fit`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["beyond", "slope", "targets"]


def scaled(q: Any) -> Any:
    """Return (x + 3) e^(x^2) erfc(x), q = 1 / (x + 3)."""
    import mpmath as mp

    x = 1 / q - 3
    return mp.exp(x * x) * mp.erfc(x) / q


def beyond(centre: float) -> Callable[[Any], Any]:
    """Return `scaled` as a function of q - centre."""
    import mpmath as mp

    return lambda s: scaled(s + mp.mpf(centre))


def slope(w: Any) -> Any:
    """Return erfinv(x) / x, w = -log(1 - x^2): Newton's method for log(erfc(y)) = log(1 - x)."""
    import mpmath as mp

    if w < 1e-15:
        return mp.sqrt(mp.pi) / 2
    x = mp.sqrt(-mp.expm1(-w))
    if w < 3:
        return mp.erfinv(x) / x
    target = -w - mp.log1p(x)  # 1 - x = e^-w / (1 + x)
    y = mp.sqrt(w) * mp.mpf("0.85")
    for _ in range(9):
        rest = mp.erfc(y)
        y += (mp.log(rest) - target) * rest * mp.exp(y * y) * mp.sqrt(mp.pi) / 2
    return y / x


def targets() -> list[tuple[str, str, Callable[[Any], Any], Any, Any, int, Callable[[Any], Any]]]:
    """Return (name, what it approximates, function, low, high, degree, weight) of every polynomial."""
    import mpmath as mp

    def inverse(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda t: 1 / f(t)

    def at(x: str, centre: float) -> Any:
        return 1 / (mp.mpf(x) + 3) - mp.mpf(centre)

    def around(centre: str) -> Callable[[Any], Any]:
        return lambda t: slope((t + mp.mpf(centre)) ** 2)

    near = lambda t: slope(t + mp.mpf("3.125"))  # noqa: E731
    far = lambda t: slope(t + mp.mpf("11.125"))  # noqa: E731
    what = "(x + 3) e^(x^2) erfc(x) as a function of s = 1/(x + 3) -"
    return [
        ("ERFC_NEAR_64", f"{what} 0.19921875, 0.74 <= x <= 4",
         beyond(0.19921875), at("4", 0.19921875), at("0.74", 0.19921875), 14, inverse(beyond(0.19921875))),
        ("ERFC_FAR_64", f"{what} 0.087890625, 4 <= x <= 27.3",
         beyond(0.087890625), at("27.3", 0.087890625), at("4", 0.087890625), 14, inverse(beyond(0.087890625))),
        ("ERFC_32", f"{what} 0.1875, 1/2 <= x <= 10.1; float64 inside float32 erfc",
         beyond(0.1875), at("10.1", 0.1875), at("0.5", 0.1875), 10, inverse(beyond(0.1875))),
        ("ERFINV_NEAR_64", "erfinv(x)/x as a function of t = w - 3.125, w = -log(1 - x^2) <= 6.25",
         near, -mp.mpf("3.125"), mp.mpf("3.13"), 24, inverse(near)),
        ("ERFINV_MIDDLE_64", "erfinv(x)/x as a function of t = sqrt(w) - 3.25, 6.25 <= w <= 16",
         around("3.25"), -mp.mpf("0.751"), mp.mpf("0.751"), 21, inverse(around("3.25"))),
        ("ERFINV_FAR_64", "erfinv(x)/x as a function of t = sqrt(w) - 5, 16 <= w <= 36.1",
         around("5"), -mp.mpf("1.001"), mp.mpf("1.01"), 19, inverse(around("5"))),
        ("ERFINV_NEAR_32", "the first of these; float64 inside float32 erfinv",
         near, -mp.mpf("3.125"), mp.mpf("3.13"), 12, inverse(near)),
        ("ERFINV_FAR_32", "erfinv(x)/x as a function of t = w - 11.125, 6.25 <= w <= 16; float64, likewise",
         far, -mp.mpf("4.876"), mp.mpf("4.93"), 11, inverse(far)),
    ]  # fmt: skip
