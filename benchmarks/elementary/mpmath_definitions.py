"""Each elementary function's mpmath definition, a quick stand-in, and where to look for errors.

Names that the registry does not have are simply not measured.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

__all__ = ["REFERENCES", "Reference"]


class Reference(NamedTuple):
    """One function.

    Attributes
    ----------
    exact : ``exact(mp, x, ...)``, the value by mpmath.
    quick : the function by numpy or scipy; finds points worth a look, and is float32's reference.
    only_double : whether `quick` takes no more digits than float64.
    bend : interval of which points are taken uniformly; `bend32` that of float32 where it is another one.
    low, high : arguments outside are left out; of all arguments.
    points : ``points(rng, count, wide)``, one array per argument: where the function is hard.
    keep : ``keep(*arrays)``, which points have a finite value that is worth comparing.
    timed : interval of the arguments that are timed.
    floor : errors are counted in units of at least this number's last place.
    operands : number of arguments.
    """

    exact: Callable[..., Any]
    quick: Callable[..., Any] | None = None
    only_double: bool = False
    bend: tuple[float, float] = (-10.0, 10.0)
    bend32: tuple[float, float] | None = None
    low: float = -np.inf
    high: float = np.inf
    points: Callable[[np.random.Generator, int, bool], list[np.ndarray]] | None = None
    keep: Callable[..., np.ndarray] | None = None
    timed: tuple[float, float] = (-10.0, 10.0)
    floor: float = 0.0
    operands: int = 1

    def bends(self, wide: bool) -> tuple[float, float]:
        """The interval of a dtype."""
        return self.bend if wide or self.bend32 is None else self.bend32

    def inside(self, *arrays: np.ndarray) -> np.ndarray:
        """Mask of the points in the domain."""
        with np.errstate(all="ignore"):
            # float32 would round the bounds
            within = np.all([(x >= np.float64(self.low)) & (x <= np.float64(self.high)) for x in arrays], axis=0)
            kept: np.ndarray = within if self.keep is None else within & self.keep(*arrays)
        return kept


def _scipy(name: str) -> Callable[..., Any]:
    def function(*arrays: np.ndarray) -> Any:
        from scipy import special

        return getattr(special, name)(*arrays)

    return function


def _erfinv(x: np.ndarray) -> Any:
    """scipy's, which takes 300 times as long to refuse an argument as to answer."""
    out = np.full_like(x, np.nan)
    inside = np.abs(x) <= 1
    out[inside] = _scipy("erfinv")(x[inside])
    return out


def _near(*centres: float, low: float = -40.0, high: float = -1.0) -> Callable[..., list[np.ndarray]]:
    """Points whose distance from a centre has any exponent between `low` and `high`."""

    def points(rng: np.random.Generator, count: int, wide: bool) -> list[np.ndarray]:
        offsets = 2.0 ** rng.uniform(low if wide else low / 2, high, count) * rng.choice([-1.0, 1.0], count)
        return [rng.choice(centres, count) + offsets]

    return points


def _near_multiples_of_half_pi(limit: float, limit32: float) -> Callable[..., list[np.ndarray]]:
    """Multiples below 2^limit: beyond, products with the rounded pi/2 are near none."""

    def points(rng: np.random.Generator, count: int, wide: bool) -> list[np.ndarray]:
        whole = 2.0 ** rng.uniform(0, (limit if wide else limit32) - 1, count) * rng.choice([-1.0, 1.0], count)
        return [np.rint(whole) * (np.pi / 2)]

    return points


def _powers(rng: np.random.Generator, count: int, wide: bool) -> list[np.ndarray]:
    """Bases and exponents whose power is anywhere in the range."""
    third = count // 3
    bottom, top = (-1074, 1024) if wide else (-149, 128)
    x = np.concatenate([
        2.0 ** rng.uniform(bottom, top, third), 2.0 ** rng.uniform(-2, 2, third),
        1 + 2.0 ** rng.uniform(-30, -1, count - 2 * third) * rng.choice([-1.0, 1.0], count - 2 * third),
    ])  # fmt: skip
    y = rng.uniform(*(-745.1, 709.78) if wide else (-103.9, 88.72), count) / np.log(x)
    y[third : 2 * third] = rng.uniform(-9, 9, third)
    return [x, y]


def _ratios(rng: np.random.Generator, count: int, wide: bool) -> list[np.ndarray]:
    """Pairs of any magnitude whose ratio is not extreme."""
    x = 2.0 ** rng.uniform(*(-1060, 1020) if wide else (-140, 126), count) * rng.choice([-1.0, 1.0], count)
    return [x * 2.0 ** rng.uniform(-3, 3, count) * rng.choice([-1.0, 1.0], count), x]


def _rsqrt(x: Any) -> Any:
    return 1 / np.sqrt(x)


def _exponential(exact: Callable[..., Any], quick: Callable[..., Any]) -> Reference:
    return Reference(exact, quick, bend=(-745.2, 709.8), bend32=(-104.0, 88.73), points=_near(0.0, low=-60, high=3))


def _logarithm(exact: Callable[..., Any], quick: Callable[..., Any]) -> Reference:
    return Reference(exact, quick, bend=(0.4, 2.2), low=5e-324, points=_near(1.0), timed=(0.1, 10.0))


def _of_angle(exact: Callable[..., Any], quick: Callable[..., Any]) -> Reference:
    return Reference(exact, quick, points=_near_multiples_of_half_pi(47, 27))


def _on_unit(exact: Callable[..., Any], quick: Callable[..., Any]) -> Reference:
    points = _near(-1.0, -0.5, 0.5, 1.0)
    return Reference(exact, quick, bend=(-1.0, 1.0), low=-1.0, high=1.0, points=points, timed=(-1.0, 1.0))


REFERENCES: dict[str, Reference] = {
    "exp": _exponential(lambda mp, x: mp.exp(x), np.exp),
    "exp2": Reference(lambda mp, x: mp.power(2, x), np.exp2, bend=(-1075.0, 1024.0), bend32=(-150.0, 128.0),
                      points=_near(0.0, low=-60, high=3)),
    "expm1": _exponential(lambda mp, x: mp.expm1(x), np.expm1),
    "log": _logarithm(lambda mp, x: mp.log(x), np.log),
    "log2": _logarithm(lambda mp, x: mp.log(x, 2), np.log2),
    "log10": _logarithm(lambda mp, x: mp.log10(x), np.log10),
    "log1p": Reference(lambda mp, x: mp.log1p(x), np.log1p, bend=(-0.999999, 3.0), low=np.nextafter(-1.0, 0),
                       points=_near(0.0, low=-60), timed=(0.1, 10.0)),
    "sin": _of_angle(lambda mp, x: mp.sin(x), np.sin),
    "cos": _of_angle(lambda mp, x: mp.cos(x), np.cos),
    "tan": _of_angle(lambda mp, x: mp.tan(x), np.tan),
    "asin": _on_unit(lambda mp, x: mp.asin(x), np.arcsin),
    "acos": _on_unit(lambda mp, x: mp.acos(x), np.arccos),
    "atan": Reference(lambda mp, x: mp.atan(x), np.arctan, bend=(-3.0, 3.0), points=_near(-2.0, -0.5, 0.5, 2.0)),
    "atan2": Reference(lambda mp, y, x: mp.atan2(y, x), np.arctan2, bend=(-3.0, 3.0), points=_ratios, operands=2,
                       keep=lambda y, x: (y != 0) | (x != 0)),
    "sinh": Reference(lambda mp, x: mp.sinh(x), np.sinh, bend=(-3.0, 3.0), points=_near(0.0, low=-30, high=9.5)),
    "cosh": Reference(lambda mp, x: mp.cosh(x), np.cosh, bend=(-3.0, 3.0), points=_near(0.0, low=-30, high=9.5)),
    "tanh": Reference(lambda mp, x: mp.tanh(x), np.tanh, bend=(-1.5, 1.5), points=_near(0.0, low=-60, high=5)),
    "asinh": Reference(lambda mp, x: mp.asinh(x), np.arcsinh, bend=(-3.0, 3.0)),
    "acosh": Reference(lambda mp, x: mp.acosh(x), np.arccosh, bend=(1.0, 4.0), low=1.0, points=_near(1.0),
                       timed=(1.0, 10.0)),
    "atanh": Reference(lambda mp, x: mp.atanh(x), np.arctanh, bend=(-1.0, 1.0), points=_near(-1.0, 1.0, 0.0),
                       low=np.nextafter(-1.0, 0), high=np.nextafter(1.0, 0), timed=(-1.0, 1.0)),
    "sigmoid": Reference(lambda mp, x: 1 / (1 + mp.exp(-x)), _scipy("expit"), only_double=True, bend=(-745.1, 40.0),
                         bend32=(-103.9, 40.0), points=_near(0.0, low=-10, high=4)),
    "softplus": Reference(lambda mp, x: mp.log1p(mp.exp(x)), lambda x: np.logaddexp(x, 0), bend=(-3.0, 3.0)),
    "erf": Reference(lambda mp, x: mp.erf(x), _scipy("erf"), only_double=True, bend=(-6.2, 6.2),
                     points=_near(0.921875, 1.25)),
    "erfc": Reference(lambda mp, x: mp.erfc(x), _scipy("erfc"), only_double=True, bend=(-6.2, 27.3),
                      bend32=(-4.2, 10.1), points=_near(0.75, 1.5, -0.75, high=-0.5), high=28.0, timed=(-5.0, 5.0)),
    "erfinv": Reference(lambda mp, x: mp.erfinv(x), _erfinv, only_double=True, bend=(-1.0, 1.0),
                        low=np.nextafter(-1.0, 0), high=np.nextafter(1.0, 0), points=_near(-1.0, 1.0, 0.0, low=-52),
                        timed=(-1.0, 1.0)),
    "lgamma": Reference(lambda mp, x: mp.loggamma(x).real, _scipy("gammaln"), only_double=True, bend=(0.0, 5.0),
                        low=-0.5, points=_near(1.0, 2.0, 0.75, 2.75), timed=(0.1, 10.0),
                        keep=lambda x: (x != 0) & (np.abs(x) < 2.5e305)),
    "digamma": Reference(lambda mp, x: mp.psi(0, x), _scipy("psi"), only_double=True, bend=(0.0, 5.0),
                         low=-0.25, points=_near(1.4616321449683622, 0.75, 2.75), timed=(0.1, 10.0),
                         keep=lambda x: np.abs(x) > 1e-307),
    "pow": Reference(lambda mp, x, y: mp.power(x, y), np.power, operands=2, points=_powers,
                     keep=lambda x, y: (x > 0) & (np.abs(y * np.log(x)) < 746), timed=(0.1, 9.0)),
    "xlogy": Reference(lambda mp, x, y: x * mp.log(y), lambda x, y: x * np.log(y), operands=2, bend=(0.4, 2.2),
                       keep=lambda x, y: (y > 0) & (np.abs(x * np.log(y)) < np.finfo(x.dtype).max) & (y != 1),
                       timed=(0.1, 10.0)),
    "hypot": Reference(lambda mp, x, y: mp.hypot(x, y), np.hypot, operands=2, points=_ratios),
    "logaddexp": Reference(lambda mp, x, y: max(x, y) + mp.log1p(mp.exp(-abs(x - y))), np.logaddexp, operands=2,
                           floor=1.0),
    "rsqrt": _logarithm(lambda mp, x: 1 / mp.sqrt(x), _rsqrt),
}  # fmt: skip
