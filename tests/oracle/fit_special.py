"""Fits for special functions of float32, which compute in float64; see `tests.oracle.fit`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["targets"]


def targets() -> list[tuple[str, str, Callable[[Any], Any], Any, Any, int, Callable[[Any], Any]]]:
    """Return (name, what it approximates, function, low, high, degree, weight) of every polynomial."""
    import mpmath as mp

    from tests.oracle.fit_error import beyond, slope

    def inverse(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda t: 1 / f(t)

    one = lambda _: mp.mpf(1)  # noqa: E731
    centre = mp.mpf(1) / 8 + mp.mpf(1) / 32

    def scaled(s: Any) -> Any:
        q = s + centre
        return (1 + 3 * q) / mp.sqrt(mp.pi) if q < 1e-9 else beyond(float(centre))(s)

    def tail(t: Any) -> Any:
        return slope((t + mp.mpf("7.0625")) ** 2)

    def log_rest(f: Any) -> Any:
        return -mp.mpf(1) / 2 + f / 3 if abs(f) < 1e-9 else (mp.log1p(f) - f) / f**2

    def modified(order: int) -> Callable[[Any], Any]:
        def function(t: Any) -> Any:
            x = max(4 * (t + 1), mp.mpf(10) ** -25)
            return mp.exp(-x) * mp.besseli(order, x) / x**order

        return function

    def modified_far(order: int) -> Callable[[Any], Any]:
        def function(t: Any) -> Any:
            if t < -1 + mp.mpf(10) ** -5:  # 1/x = (t + 1)/16: the asymptotic series
                return (1 - (mp.mpf(4 * order**2) - 1) / 8 * (t + 1) / 16) / mp.sqrt(2 * mp.pi)
            x = 16 / (t + 1)
            return mp.sqrt(x) * mp.exp(-x) * mp.besseli(order, x)

        return function

    def first_kind(order: int) -> Callable[[Any], Any]:
        """Return J(x) / x^order without its two first zeros, of v = x^2 - 32."""
        zeros = [mp.besseljzero(order, k) ** 2 for k in (1, 2)]

        def function(v: Any) -> Any:
            u = max(v + 32, mp.mpf(10) ** -30)
            x = mp.sqrt(u)
            return mp.besselj(order, x) / x**order / ((u - zeros[0]) * (u - zeros[1]))

        return function

    def whole(order: int) -> Callable[[Any], Any]:
        def function(v: Any) -> Any:
            x = mp.sqrt(max(v + 32, mp.mpf(10) ** -30))
            return mp.besselj(order, x) / x**order

        return function

    def second_kind(order: int) -> Callable[[Any], Any]:
        """Return (Y(x) - 2/pi (log(x) J(x) - order/x)) / x^order, of v = x^2 - 32."""

        def function(v: Any) -> Any:
            x = mp.sqrt(max(v + 32, mp.mpf(10) ** -16))
            return (mp.bessely(order, x) - 2 / mp.pi * (mp.log(x) * mp.besselj(order, x) - order / x)) / x**order

        return function

    def asymptotic(order: int, first: bool) -> Callable[[Any], Any]:
        """Return Hankel's P, or x Q, of w = 64/x^2."""
        m = 4 * mp.mpf(order) ** 2

        def function(w: Any) -> Any:
            u = w / 64
            if w < 1e-4:
                if first:
                    return 1 - (m - 1) * (m - 9) / 128 * u + (m - 1) * (m - 9) * (m - 25) * (m - 49) / 98304 * u**2
                a = (m - 1) * (m - 9) * (m - 25)
                return (m - 1) / 8 - a / 3072 * u + a * (m - 49) * (m - 81) / 3932160 * u**2
            x = 1 / mp.sqrt(u)
            angle, size = x - (2 * order + 1) * mp.pi / 4, mp.sqrt(mp.pi * x / 2)
            j, y, c, s = mp.besselj(order, x), mp.bessely(order, x), mp.cos(angle), mp.sin(angle)
            return size * (j * c + y * s) if first else x * size * (y * c - j * s)

        return function

    found = [
        ("SCALED_ERFC_32", "(x + 3) e^(x^2) erfc(x) as a function of s = 1/(x + 3) - 0.15625, x >= 0",
         scaled, -centre, mp.mpf("0.33334") - centre, 12, inverse(scaled)),
        ("ERFINV_TAIL_32", "erfinv(x)/x as a function of t = sqrt(w) - 7.0625, 16 <= w <= 103",
         tail, mp.mpf("-3.07"), mp.mpf("3.1"), 11, inverse(tail)),
        ("LOG_NARROW", "(log1p(f) - f) / f^2, sqrt(1/2) <= 1+f <= sqrt(2); 2^-35 in float64", log_rest,
         mp.sqrt(mp.mpf(1) / 2) - 1, mp.sqrt(2) - 1, 10, lambda f: f * f + mp.mpf(10) ** -6),
    ]  # fmt: skip
    below, upper = mp.mpf("32.001"), mp.mpf("1.0001")
    for n in (0, 1):
        near, far, kind = modified(n), modified_far(n), first_kind(n)
        over = f" / x^{n}" if n else ""
        found += [
            (f"I{n}E_NEAR_32", f"e^-x I{n}(x){over} as a function of t = x/4 - 1, x <= 8",
             near, mp.mpf(-1), mp.mpf("1.0001"), 18, inverse(near)),
            (f"I{n}E_FAR_32", f"sqrt(x) e^-x I{n}(x) as a function of t = 16/x - 1, x >= 8",
             far, mp.mpf(-1), mp.mpf("1.0001"), 7, inverse(far)),
            (f"J{n}_NEAR_32", f"J{n}(x){over} without its first two zeros, of v = x^2 - 32, x <= 8",
             kind, -mp.mpf(32), below, 10, inverse(kind)),
            (f"J{n}_64", f"J{n}(x){over} as a function of v = x^2 - 32, x <= 8",
             whole(n), -mp.mpf(32), below, 16 - n, one),
            (f"Y{n}_64", f"(Y{n}(x) - 2/pi (log(x) J{n}(x){' - 1/x' if n else ''})){over} of v = x^2 - 32, x <= 8",
             second_kind(n), -mp.mpf(32), below, 16 - n, one),
            (f"P{n}_64", "Hankel's P, of w = 64/x^2, x >= 8", asymptotic(n, True), mp.mpf(0), upper, 13, one),
            (f"Q{n}_64", "Hankel's x Q, of w = 64/x^2, x >= 8", asymptotic(n, False), mp.mpf(0), upper, 13, one),
        ]  # fmt: skip
    return found
