"""Fits for lgamma, digamma and polygamma; see `tests.oracle.fit`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["targets"]


def targets() -> list[tuple[str, str, Callable[[Any], Any], Any, Any, int, Callable[[Any], Any]]]:
    """Return (name, what it approximates, function, low, high, degree, weight) of every polynomial."""
    import mpmath as mp

    def root(w: Any) -> Any:
        return mp.sqrt(w + mp.mpf(10) ** -12)

    def inverse(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda t: 1 / f(t)

    tiny = mp.mpf(10) ** -15
    zero = mp.findroot(lambda x: mp.psi(0, x), mp.mpf("1.4616"))

    def place(x: str) -> Any:
        return (mp.mpf(x) - mp.mpf("1.4375")) / (mp.mpf(x) + mp.mpf("1.4375"))

    def argument(u: Any) -> Any:
        x = mp.mpf("1.4375") * (1 + u) / (1 - u)
        return x + tiny if min(abs(x - 1), abs(x - 2), abs(x - zero)) < 1e-9 else x

    def lgamma_near(u: Any) -> Any:
        x = argument(u)
        return mp.loggamma(x) / ((x - 1) * (x - 2))

    def digamma_near(u: Any) -> Any:
        x = argument(u)
        return mp.psi(0, x) / (x - zero)

    def stirling(w: Any) -> Any:
        if w < 1e-6:
            return mp.mpf(1) / 12 - w / 360 + w * w / 1260 - w**3 / 1680
        x = 1 / mp.sqrt(w)
        return x * (mp.loggamma(x) - ((x - mp.mpf(1) / 2) * mp.log(x) - x + mp.log(2 * mp.pi) / 2))

    def digamma_far(w: Any) -> Any:
        if w < 1e-6:
            return mp.mpf(1) / 12 - w / 120 + w * w / 252 - w**3 / 240
        x = 1 / mp.sqrt(w)
        return (mp.log(x) - 1 / (2 * x) - mp.psi(0, x)) / w

    def sine(z: Any) -> Any:
        if z < 1e-8:
            return -(mp.pi**2) / 6 + mp.pi**4 * z / 120 - mp.pi**6 * z * z / 5040
        return (mp.sin(mp.pi * mp.sqrt(z)) / (mp.pi * mp.sqrt(z)) - 1) / z

    def cosine(z: Any) -> Any:
        if z < 1e-8:
            return -(mp.pi**2) / 2 + mp.pi**4 * z / 24 - mp.pi**6 * z * z / 720
        return (mp.cos(mp.pi * mp.sqrt(z)) - 1) / z

    far = 1 / mp.mpf("2.75") ** 2
    linear = lambda z: z + mp.mpf(10) ** -6  # noqa: E731
    what = "as a function of u = (x - c) / (x + c), c = 1.4375, 0.75 <= x <= 2.75"
    return [
        ("LGAMMA_NEAR", f"lgamma(x) / ((x - 1) (x - 2)) {what}",
         lgamma_near, place("0.75"), place("2.75"), 20, inverse(lgamma_near)),
        ("LGAMMA_FAR", "x (lgamma(x) - (x - 1/2) log(x) + x - log(2 pi)/2), of w = 1/x^2, x >= 2.75",
         stirling, 0, far, 10, lambda w: root(w) / mp.loggamma(1 / root(w))),
        ("DIGAMMA_NEAR", f"digamma(x) / (x - 1.46163...) {what}",
         digamma_near, place("0.75"), place("2.75"), 21, inverse(digamma_near)),
        ("DIGAMMA_FAR", "(log(x) - 1/(2 x) - digamma(x)) / w, of w = 1/x^2, x >= 2.75",
         digamma_far, 0, far, 11, lambda w: w / mp.psi(0, 1 / root(w)) + mp.mpf(10) ** -9),
        ("SINE_OF_TURNS", "(sin(pi r)/(pi r) - 1) / z, z = r^2, |r| <= 1/2", sine, 0, mp.mpf("0.2501"), 7, linear),
        ("COSINE_OF_TURNS", "(cos(pi r) - 1) / z, z = r^2, |r| <= 1/2", cosine, 0, mp.mpf("0.2501"), 8, linear),
    ]  # fmt: skip
