"""Where a function has no derivative, which one it gets: the choice of every op with a kink, a jump or a border.

A gradient rule gives a number everywhere. Where left and right differ, that number is a choice, and programs depend on
it: training meets such points all the time (a relu of exactly 0, equal maxima, the norm of a zero vector). Every choice
stands here once, as a point and the gradient there; tests hold the rules to it, and look for ops that have such
points and no entry. The choices are PyTorch's, except where the text says so.
"""

from __future__ import annotations

from typing import Any, NamedTuple

INF, NAN = float("inf"), float("nan")
LN2 = 0.6931471805599453
OVER_ALL = {"dim": (0,), "keepdim": False}


class Subgradient(NamedTuple):
    """The choice of one op at one point.

    Attributes
    ----------
    where : the point, in words.
    choice : the gradient there, in words.
    operands : the point: a list of floats per operand.
    gradients : per operand the gradient of the sum of the results; None for operands without one.
    options : further arguments.
    """

    where: str
    choice: str
    operands: tuple[Any, ...]
    gradients: tuple[Any, ...]
    options: dict[str, Any] = {}


def _jump(at: float) -> list[Subgradient]:
    return [Subgradient("everywhere, jumps too", "0", ([at],), ([0.0],))]


def _border(at: list[float], slope: list[float]) -> list[Subgradient]:
    return [Subgradient(f"border of the domain, {', '.join(map(str, at))}", "its limit", (at,), (slope,))]


def _tie(one: float, other: float, choice: str) -> list[Subgradient]:
    return [Subgradient("a = b", choice, ([1.0], [1.0]), ([one], [other]))]


#: By the name of the op in the registry, or of the public function.
TABLE: dict[str, list[Subgradient]] = {
    "mantissa_of": [
        Subgradient("powers of two, where it jumps", "2^-exponent", ([1.0, -1.0, 4.0],), ([0.5, 0.5, 0.125],))
    ],
    # ------------------------------------------------------------------ kinks
    "abs": [Subgradient("0", "0", ([0.0],), ([0.0],))], "i0e": [Subgradient("0", "0", ([0.0],), ([0.0],))],
    "smooth_l1_piece": [Subgradient("d = 0, beta <= 0", "0", ([0.0], [-1.0]), ([0.0], [-0.5]))],
    "smooth_l1_slope": [
        Subgradient("|d| = beta", "0 by d and beta, as beyond", ([-1.0], [-1.0], [1.0]), ([-1.0], [0.0], [0.0]))
    ],
    "huber_piece": [Subgradient("d = 0, delta < 0", "0", ([0.0], [-1.0]), ([0.0], [1.0]))],
    "huber_slope": [
        Subgradient("|d| = delta", "1 by d, 0 by delta, as inside", ([-1.0], [-1.0], [1.0]), ([-1.0], [-1.0], [0.0]))
    ],
    "relu": [Subgradient("0", "0, the left slope", ([0.0],), ([0.0],))],
    "leaky_scaled": [Subgradient("0", "`slope`, the left one", ([0.0], [0.25]), ([0.25], [0.0]))],
    "elu_scaled": [Subgradient("0", "`alpha`, the left slope", ([0.0], [0.5]), ([0.5], [0.0]))],
    "celu_scaled": [
        Subgradient("x = 0", "1: smooth for alpha > 0", ([0.0], [0.5]), ([1.0], [0.0])),
        Subgradient("alpha = 0", "nan", ([0.0], [0.0]), ([NAN], [NAN])),
    ],
    "softplus_scaled": [
        Subgradient("beta x = threshold", "the slope below it", ([0.0], [1.0], [0.0]), ([0.5], [-LN2], None))
    ],
    "hardsigmoid": [Subgradient("-3, 3", "0", ([-3.0, 3.0],), ([0.0, 0.0],))],
    "hardswish": [Subgradient("-3, 3", "0 and 1, the outer slopes", ([-3.0, 3.0],), ([0.0, 1.0],))],
    "hardshrink_by": [Subgradient("|x| = lambd, jumps", "0", ([-0.5, 0.5], [0.5, 0.5]), ([0.0, 0.0], None))],
    "softshrink_by": [
        Subgradient("|x| = lambd", "0", ([-0.5, 0.5], [0.5, 0.5]), ([0.0, 0.0], [0.0, 0.0])),
    ],
    "hardtanh_between": [
        Subgradient("x = low", "0; the bound gets it all", ([-1.0], [-1.0], [1.0]), ([0.0], [1.0], [0.0])),
        Subgradient("x = high", "0; the bound gets it all", ([1.0], [-1.0], [1.0]), ([0.0], [0.0], [1.0])),
    ],
    "clamp": [
        Subgradient(
            "x at a bound", "1; the bound gets 0", ([-1.0, 1.0], [-1.0, -1.0], [1.0, 1.0]),
            ([1.0, 1.0], [0.0, 0.0], [0.0, 0.0]),
        ),
        Subgradient("low > high", "high gets it all", ([0.0], [2.0], [1.0]), ([0.0], [0.0], [1.0])),
    ],
    "clamp_min": [Subgradient("x = low", "1; the bound gets 0", ([1.0], [1.0]), ([1.0], [0.0]))],
    "clamp_max": [Subgradient("x = high", "1; the bound gets 0", ([1.0], [1.0]), ([1.0], [0.0]))],
    "maximum": _tie(0.5, 0.5, "half each"),
    "minimum": _tie(0.5, 0.5, "half each"),
    "fmax": _tie(1.0, 0.0, "all to a"),
    "fmin": _tie(1.0, 0.0, "all to a"),
    "where": [
        Subgradient(
            "the branch that is not taken", "0, to which its own rule may add nan (0 times inf)",
            ([True, False], [1.0, 2.0], [3.0, 4.0]), (None, [1.0, 0.0], [0.0, 1.0]),
        )
    ],
    # ------------------------------------------------------------------ jumps
    "angle": _jump(0.0), "sign": _jump(0.0), "ceil": _jump(1.0), "floor": _jump(1.0), "round": _jump(0.5),
    "trunc": _jump(1.0),
    "round_decimals": [Subgradient("everywhere, jumps too", "0 for x", ([0.5], [1.0]), ([0.0], None))],
    "round_tens": [Subgradient("everywhere, jumps too", "0 for x", ([0.5], [1.0]), ([0.0], None))],
    "frac": [Subgradient("everywhere, jumps too", "1", ([1.0],), ([1.0],))],
    "remainder": [Subgradient("multiples of b", "1 for a, -floor(a / b) for b", ([4.0], [2.0]), ([1.0], [-2.0]))],
    "fmod": [Subgradient("multiples of b", "1 for a, -trunc(a / b) for b", ([4.0], [2.0]), ([1.0], [-2.0]))],
    "floor_divide": [Subgradient("everywhere, jumps too", "0", ([4.0], [2.0]), ([0.0], [0.0]))],
    "trunc_divide": [Subgradient("everywhere, jumps too", "0", ([4.0], [2.0]), ([0.0], [0.0]))],
    "copysign": [Subgradient("a = 0; b everywhere", "0", ([0.0, 2.0], [1.0, 0.0]), ([0.0, 1.0], [0.0, 0.0]))],
    "nan_to_num": [
        Subgradient("nan", "0", ([NAN], [0.0], [9.0], [-9.0]), ([0.0], None, None, None)),
        Subgradient("infinities", "0", ([INF], [0.0], [9.0], [-9.0]), ([0.0], None, None, None)),
    ],
    "nansum": [Subgradient("nan", "0", ([NAN, 1.0],), ([0.0, 1.0],), OVER_ALL)],
    # ------------------------------------------------------------------ borders and poles
    "sqrt": _border([0.0], [INF]), "rsqrt": _border([0.0], [-INF]),
    "log": _border([0.0], [INF]), "log2": _border([0.0], [INF]), "log10": _border([0.0], [INF]),
    "log1p": _border([-1.0], [INF]), "acosh": _border([1.0], [INF]), "asin": _border([-1.0, 1.0], [INF, INF]),
    "acos": _border([-1.0, 1.0], [-INF, -INF]), "atanh": _border([-1.0, 1.0], [INF, INF]),
    "erfinv": _border([-1.0, 1.0], [INF, INF]),
    "reciprocal": [Subgradient("0", "-inf", ([0.0],), ([-INF],))],
    "div": [Subgradient("b = 0", "a / 0 as IEEE has it", ([1.0, 0.0], [0.0, 0.0]), ([INF, INF], [-INF, NAN]))],
    "addcdiv": [
        Subgradient("tensor2 = 0", "as IEEE has it", ([1.0], [1.0], [0.0], [1.0]), ([1.0], [INF], [-INF], None))
    ],
    "pow": [
        Subgradient("0^0", "0 for both", ([0.0], [0.0]), ([0.0], [0.0])),
        Subgradient("0^b, 0 < b < 1", "inf for a, 0 for b", ([0.0], [0.5]), ([INF], [0.0])),
        Subgradient("0^b, b > 0", "b 0^(b-1) for a, 0 for b", ([0.0, 0.0], [1.0, 2.0]), ([1.0, 0.0], [0.0, 0.0])),
        Subgradient("a < 0", "nan for b, which has to be whole", ([-2.0], [2.0]), ([-4.0], [NAN])),
    ],
    "xlogy": [
        Subgradient("a = 0", "0 for b, nan if b is 0", ([0.0, 0.0], [2.0, 0.0]), ([LN2, 0.0], [0.0, NAN]))
    ],
    "xlog1py": [
        Subgradient("a = 0", "0 for b, nan if b is -1", ([0.0, 0.0], [1.0, -1.0]), ([LN2, 0.0], [0.0, NAN]))
    ],
    "entr": _border([0.0], [INF]),
    "hypot": [Subgradient("0, 0", "nan", ([0.0], [0.0]), ([NAN], [NAN]))],
    "atan2": [Subgradient("0, 0", "0", ([0.0], [0.0]), ([0.0], [0.0]))],
    "lgamma": [Subgradient("0", "the limit from the right, -inf", ([0.0],), ([-INF],))],
    "digamma": [Subgradient("0", "inf", ([0.0],), ([INF],))],
    "logit": [
        Subgradient("0 and 1", "inf", ([0.0, 1.0],), ([INF, INF],)),
        Subgradient("outside", "nan, as the value", ([-0.5, 2.0],), ([NAN, NAN],)),
    ],
    # ------------------------------------------------------------------ extremes
    "amax": [Subgradient("equal maxima", "shared evenly", ([1.0, 2.0, 2.0],), ([0.0, 0.5, 0.5],), OVER_ALL)],
    "amin": [Subgradient("equal minima", "shared evenly", ([1.0, 2.0, 1.0],), ([0.5, 0.0, 0.5],), OVER_ALL)],
    "max": [
        Subgradient("equal maxima of all", "shared evenly", ([1.0, 2.0, 2.0],), ([0.0, 0.5, 0.5],)),
        Subgradient("equal maxima along `dim`", "all to the first", ([1.0, 2.0, 2.0],), ([0.0, 1.0, 0.0],), {"dim": 0}),
    ],
    "min": [
        Subgradient("equal minima of all", "shared evenly", ([1.0, 2.0, 1.0],), ([0.5, 0.0, 0.5],)),
        Subgradient("equal minima along `dim`", "all to the first", ([1.0, 2.0, 1.0],), ([1.0, 0.0, 0.0],), {"dim": 0}),
    ],
    "cummax": [Subgradient("equal maxima", "to the last so far", ([2.0, 2.0, 1.0],), ([1.0, 2.0, 0.0],), {"dim": 0})],
    "cummin": [Subgradient("equal minima", "to the last so far", ([2.0, 2.0, 3.0],), ([1.0, 2.0, 0.0],), {"dim": 0})],
    "topk": [Subgradient("equal elements", "to the first", ([2.0, 1.0, 2.0],), ([1.0, 0.0, 0.0],), {"k": 1})],
    # ------------------------------------------------------------------ norms, deviations, products
    "norm": [
        Subgradient("p = 2, all 0", "0", ([0.0, 0.0],), ([0.0, 0.0],)),
        Subgradient("p = 1, an element 0", "0 for it", ([0.0, 2.0],), ([0.0, 1.0],), {"p": 1}),
        Subgradient("p = 3, all 0", "0", ([0.0, 0.0],), ([0.0, 0.0],), {"p": 3}),
        Subgradient("p = inf, ties", "shared evenly", ([2.0, -2.0, 1.0],), ([0.5, -0.5, 0.0],), {"p": INF}),
        Subgradient("p = inf, all 0", "0", ([0.0, 0.0],), ([0.0, 0.0],), {"p": INF}),
        Subgradient("p = 0", "0", ([0.0, 2.0],), ([0.0, 0.0],), {"p": 0}),
    ],
    "std": [Subgradient("all equal", "0", ([2.0, 2.0],), ([0.0, 0.0],))],
    "sum_of_magnitudes": [Subgradient("an element 0", "0 for it", ([0.0, 2.0],), ([0.0, 1.0],), OVER_ALL)],
    "prod": [
        Subgradient("one 0", "the product of the others", ([0.0, 2.0, 3.0],), ([6.0, 0.0, 0.0],)),
        Subgradient("several 0", "0", ([0.0, 0.0, 3.0],), ([0.0, 0.0, 0.0],)),
    ],
    "cumprod": [Subgradient("a 0", "products of the others", ([2.0, 0.0, 3.0],), ([1.0, 8.0, 0.0],), {"dim": 0})],
    "logsumexp": [
        Subgradient("all -inf", "nan", ([-INF, -INF],), ([NAN, NAN],), {"dim": 0}),
        Subgradient("inf among them", "nan for it, 0 for the others", ([INF, 1.0],), ([NAN, 0.0],), {"dim": 0}),
    ],
}  # fmt: skip
