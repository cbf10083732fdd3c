"""Fit the polynomials of the elementary functions and write `coefficients.py`.

Run ``python -m tests.oracle.fit`` (needs mpmath; a few seconds). Each polynomial minimises the largest
weighted error on an interval, found by Remez' exchange algorithm on a Chebyshev grid: solve for the
polynomial whose weighted error alternates on n + 2 points, move the points to the extrema of that error,
repeat until they stay. The weight turns the error of the fitted part into the relative error of the
function it is part of.

References
----------
E. Remez, "Sur la determination des polynomes d'approximation de degre donnee", 1934.
J.-M. Muller, "Elementary Functions: Algorithms and Implementation", 3rd ed., chapter 3.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from common.kernels.math import coefficients as fitted
from tests.oracle import fit_error, fit_gamma, fit_inverse, fit_special

__all__ = ["fit", "main"]

GRID = 600
ROUNDS = 20


def fit(
    function: Callable[[Any], Any], low: Any, high: Any, degree: int, weight: Callable[[Any], Any]
) -> tuple[list[Any], Any]:
    """Return the coefficients (constant first) that minimise ``max |weight * (function - polynomial)|``.

    Returns
    -------
    (list of mpf, mpf)
        Coefficients and the weighted error that remains.
    """
    import mpmath as mp

    middle, half = (mp.mpf(low) + high) / 2, (mp.mpf(high) - low) / 2
    grid = [middle - half * mp.cos(mp.pi * (i + mp.mpf(1) / 2) / GRID) for i in range(GRID)]
    values, weights = [function(x) for x in grid], [weight(x) for x in grid]
    points = [round(i * (GRID - 1) / (degree + 1)) for i in range(degree + 2)]
    for _ in range(ROUNDS):
        system, right = mp.matrix(degree + 2, degree + 2), mp.matrix(degree + 2, 1)
        for row, i in enumerate(points):
            for power in range(degree + 1):
                system[row, power] = grid[i] ** power
            system[row, degree + 1] = (-1) ** row / weights[i]
            right[row] = values[i]
        coefficients = list(mp.lu_solve(system, right))[: degree + 1]
        errors = [w * (v - mp.polyval(coefficients[::-1], x)) for x, v, w in zip(grid, values, weights, strict=True)]
        extrema = _alternating_extrema(errors, degree + 2)
        if len(extrema) < degree + 2 or extrema == points:
            break
        points = extrema
    return coefficients, max(abs(e) for e in errors)


def _alternating_extrema(errors: list[Any], count: int) -> list[int]:
    """Return the index of the extremum of each run of one sign; beyond ``count``, the smaller end goes."""
    extrema, best = [], 0
    for i in range(1, len(errors)):
        if (errors[i] > 0) != (errors[best] > 0):
            extrema.append(best)
            best = i
        elif abs(errors[i]) > abs(errors[best]):
            best = i
    extrema.append(best)
    while len(extrema) > count:
        extrema.pop(0 if abs(errors[extrema[0]]) < abs(errors[extrema[-1]]) else -1)
    return extrema


def _series(near: Callable[[Any], Any], far: Callable[[Any], Any], border: float) -> Callable[[Any], Any]:
    """Return a function given by its Taylor series near zero, where the closed form divides zero by zero."""
    return lambda x: near(x) if abs(x) < border else far(x)


def _targets() -> list[tuple[str, str, Callable[[Any], Any], Any, Any, int, Callable[[Any], Any]]]:
    """Return (name, what it approximates, function, low, high, degree, weight) of every polynomial."""
    import mpmath as mp

    tiny = mp.mpf(10) ** -6
    half_ln2 = mp.log(2) / 2 * mp.mpf("1.0005")
    exp_rest = _series(
        lambda r: sum(r**k / mp.factorial(k + 2) for k in range(12)),
        lambda r: (mp.expm1(r) - r) / r**2,
        1e-3,
    )
    exp2_slope = _series(
        lambda r: sum(mp.log(2) ** (k + 1) * r**k / mp.factorial(k + 1) for k in range(14)),
        lambda r: mp.expm1(r * mp.log(2)) / r,
        1e-3,
    )
    # atanh over |s| <= (sqrt 2 - 1) / (sqrt 2 + 1), as a function of z = s^2
    z_log = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * mp.mpf("1.001")
    atanh_rest = _series(
        lambda z: sum(mp.mpf(2) / (2 * k + 3) * z**k for k in range(10)),
        lambda z: (2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 2) / z,
        1e-5,
    )
    atanh_rest2 = _series(
        lambda z: sum(mp.mpf(3) / (2 * k + 5) * z**k for k in range(12)),
        lambda z: (3 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 3 - z) / z**2,
        1e-4,
    )
    atanh_log2 = lambda z: (2 + z * atanh_rest(z)) / mp.log(2)  # noqa: E731
    log1p_rest = _series(
        lambda f: sum((-1) ** k * f**k / mp.mpf(k + 3) for k in range(16)),
        lambda f: (mp.log1p(f) - f + f * f / 2) / f**3,
        1e-4,
    )
    # a little beyond pi/4: the quotient of a large argument is rounded from an inexact product
    z_sin = (mp.pi / 4 * mp.mpf("1.07")) ** 2
    sin_rest = _series(
        lambda z: -mp.mpf(1) / 6 + z / 120 - z * z / 5040,
        lambda z: (mp.sin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z,
        1e-8,
    )
    cos_rest = _series(
        lambda z: mp.mpf(1) / 24 - z / 720 + z * z / 40320,
        lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2,
        1e-8,
    )
    border = mp.mpf("0.921875")  # where erf changes form, exact in binary
    z_erf = border**2 * mp.mpf("1.001")
    border32, middle32 = mp.mpf("1.25"), mp.mpf("2.59375")
    centre32 = mp.mpf("0.78125")
    z_erf32 = border32**2 * mp.mpf("1.001")
    erf_slope = _series(
        lambda z: 2 / mp.sqrt(mp.pi) * (1 - z / 3 + z * z / 10) - 1,
        lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1,
        1e-8,
    )
    erfc_log = lambda t: -mp.log(mp.erfc(t + border))  # noqa: E731
    erfc = lambda t: mp.erfc(t + border)  # noqa: E731

    def root(t: Any) -> Any:
        return mp.erfc(t + middle32) ** (mp.mpf(1) / 8)

    tanh_rest = _series(
        lambda z: -mp.mpf(1) / 3 + 2 * z / 15 - 17 * z * z / 315,
        lambda z: (mp.tanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z,
        1e-8,
    )
    one = lambda _: mp.mpf(1)  # noqa: E731
    linear = lambda x: abs(x) + tiny  # noqa: E731
    square = lambda x: x * x + tiny  # noqa: E731
    return [
        ("EXP_64", "(exp(r) - 1 - r) / r^2, |r| <= ln(2)/2", exp_rest, -half_ln2, half_ln2, 9, square),
        ("EXP_32", "the same, for float32", exp_rest, -half_ln2, half_ln2, 4, square),
        ("EXPM1_64", "the same, weighted for expm1", exp_rest, -half_ln2, half_ln2, 9, linear),
        ("EXPM1_32", "the same, for float32", exp_rest, -half_ln2, half_ln2, 4, linear),
        ("LOG_64", "(2 atanh(s)/s - 2) / z, z = s^2, |s| <= 0.1716", atanh_rest, 0, z_log, 6, linear),
        ("LOG_32", "(log1p(f) - f + f^2/2) / f^3, sqrt(1/2) <= 1+f <= sqrt(2)",
         log1p_rest, mp.sqrt(mp.mpf(1) / 2) - 1, mp.sqrt(2) - 1, 6, square),
        ("ATANH_64", "(3 atanh(s)/s - 3 - z) / z^2, z = s^2", atanh_rest2, 0, z_log, 6, square),
        ("LOG2_32", "2 atanh(s) / (s ln 2) as a function of z = s^2; float64 inside float32 pow",
         atanh_log2, 0, z_log, 4, one),
        ("EXP2_64", "(2^r - 1) / r, |r| <= 1/2", exp2_slope, -mp.mpf("0.501"), mp.mpf("0.501"), 10, linear),
        ("EXP2_32", "the same; float64 inside float32 pow",
         exp2_slope, -mp.mpf("0.501"), mp.mpf("0.501"), 5, linear),
        ("SIN_64", "(sin(r)/r - 1) / z, z = r^2, |r| <= 1.07 pi/4", sin_rest, 0, z_sin, 5, linear),
        ("COS_64", "(cos(r) - 1 + z/2) / z^2", cos_rest, 0, z_sin, 5, square),
        ("SIN_32", "(sin(r)/r - 1) / z; float64 inside float32 sin", sin_rest, 0, z_sin, 3, linear),
        ("COS_32", "(cos(r) - 1 + z/2) / z^2; float64 inside float32 cos", cos_rest, 0, z_sin, 3, square),
        ("ERF_64", "erf(x)/x - 1 as a function of z = x^2, |x| <= 0.921875", erf_slope, 0, z_erf, 11, one),
        ("ERF_32", "erf(x)/x - 1 as a function of x^2 - 0.78125, |x| <= 1.25, for float32",
         lambda v: erf_slope(v + centre32), -centre32, z_erf32 - centre32, 6,
         lambda v: 1 / (1 + erf_slope(v + centre32))),
        ("ERFC_LOG_64", "-log(erfc(0.921875 + t)), t <= 5.008125",
         erfc_log, 0, mp.mpf("5.93") - border, 17, erfc),
        ("ERF_FAR_32", "erfc(t + 2.59375)^(1/8), -1.34375 <= t <= 1.34625, for float32",
         root, border32 - middle32, mp.mpf("3.94") - middle32, 6,
         lambda t: 8 * mp.erfc(t + middle32) / root(t)),
        ("TANH_64", "(tanh(r)/r - 1) / z, z = r^2, |r| <= ln(2)/4", tanh_rest, 0, half_ln2**2 / 4, 5, linear),
        ("TANH_32", "the same, for float32", tanh_rest, 0, half_ln2**2 / 4, 2, linear),
    ]  # fmt: skip


def main() -> None:
    """Fit every polynomial and write `coefficients.py` beside this file."""
    import mpmath as mp
    import numpy as np

    lines = [
        '"""Polynomial coefficients of the elementary functions, constant term first.',
        "",
        "Written by `python -m tests.oracle.fit`; do not edit. The comment gives the largest weighted",
        "error of the fit before its coefficients are rounded: the relative error it causes in the function.",
        '"""',
        "",
        "# ruff: noqa: E501",
    ]
    # Their float32 functions compute in float64
    special = fit_special.targets()
    in_double = {"LOG2_32", "EXP2_32", "SIN_32", "COS_32", "ERFC_32", "ERFINV_NEAR_32", "ERFINV_FAR_32"}
    in_double |= {name for name, *_ in special}
    with mp.workdps(60):
        themes = fit_inverse, fit_error, fit_gamma
        for name, what, *target in [*_targets(), *(t for theme in themes for t in theme.targets()), *special]:
            coefficients, error = fit(*target)
            single = name.endswith("32") and name not in in_double
            numbers = ", ".join(repr(float(np.float32(c) if single else float(c))) for c in coefficients)
            lines += [f"# {what}: 2^{float(mp.log(error, 2)):.1f}", f"{name} = ({numbers})"]
            print(lines[-2], name, flush=True)
    Path(fitted.__file__).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
