"""Programs of control flow by the construct and by what is constant in it, and in which form the constant comes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

#: Forms of a constant: of an engine and a Python number; "captured" is a tensor made outside the compiled function.
FORMS: dict[str, Callable[[Any, Any], Any]] = {
    "literal": lambda tw, n: n,
    "numpy scalar": lambda tw, n: np.asarray(n)[()],
    "0-d array": lambda tw, n: np.asarray(n),
    "tensor": lambda tw, n: tw.tensor(n, dtype=tw.float64) if isinstance(n, float) else tw.tensor(n),
    "captured": lambda tw, n: tw.nn.Parameter(np.float64(n)) if isinstance(n, float) else tw.tensor(n),
}


def double(x):
    return x * 2.0


def cube(x):
    return x * x * x


#: Of an engine, x and the maker of constants; `x` is 0-d or has one dimension.
PROGRAMS: dict[str, Callable[..., Any]] = {
    "cond, true": lambda tw, x, of: tw.cond(of(True), cube, double, x),
    "cond, false": lambda tw, x, of: tw.cond(of(False), double, cube, x),
    "cond, an int": lambda tw, x, of: tw.cond(of(-3), cube, double, x),
    "cond, a float": lambda tw, x, of: tw.cond(of(0.5), cube, double, x),
    "cond, an operand": lambda tw, x, of: tw.cond(x.sum() > 0, lambda a: a * cube(x), lambda a: x - a, of(2.0)),
    "cond, everything": lambda tw, x, of: cube(x) * tw.cond(of(True), double, cube, of(2.0)),
    "cond, results": lambda tw, x, of: cube(x) * tw.cond(
        x.sum() > 0, lambda a: a[0], lambda a: a[1], (of(2.0), of(3.0))
    ),
    "switch": lambda tw, x, of: tw.switch(of(2), [double, lambda x: x, cube], x),
    "switch, too large": lambda tw, x, of: tw.switch(of(7), [double, cube], x),
    "switch, one branch": lambda tw, x, of: tw.switch(of(0), [cube], x),
    "while_loop, init": lambda tw, x, of: tw.while_loop(
        lambda s: s["i"] < 3, lambda s: {"i": s["i"] + 1, "y": s["y"] * x.sum()}, {"i": of(0), "y": of(1.5)}
    )["y"],
    "while_loop, a bound": lambda tw, x, of: tw.while_loop(lambda y: y.sum() < of(40.0), cube, x * x + 1.5),
    "while_loop, never": lambda tw, x, of: tw.while_loop(lambda y: of(False), cube, x) * x,
    "fori_loop, bounds": lambda tw, x, of: tw.fori_loop(of(1), of(3), lambda i, y: y * x + i, x),
    "fori_loop, a bound": lambda tw, x, of: tw.fori_loop(0, of(2), lambda i, y: y * x, x),
    "fori_loop, nothing to do": lambda tw, x, of: tw.fori_loop(of(3), of(1), lambda i, y: y * x, x) * x,
    "fori_loop, init": lambda tw, x, of: tw.fori_loop(0, 3, lambda i, y: y * x.sum() + i, of(1.5)),
    "fori_loop, everything": lambda tw, x, of: cube(x) * tw.fori_loop(of(0), of(3), lambda i, y: y * 2 + i, of(1.5)),
    "scan, init": lambda tw, x, of: tw.scan(lambda c, v: (c * v, c), of(2.5), cube(x).reshape(-1)),
    "scan, xs": lambda tw, x, of: tw.scan(lambda c, v: (c * x * v, c), x, np.array([0.5, 1.5]))[0],
    "scan, ys": lambda tw, x, of: cube(x) * tw.scan(
        lambda c, v: (c * v, of(2.0)), x.sum(), cube(x).reshape(-1)
    )[1].sum(),
    "scan, no row": lambda tw, x, of: tw.scan(lambda c, v: (c * v, c), cube(x).sum(), np.zeros(0)),
    "map": lambda tw, x, of: tw.map(lambda v: v * of(2.0) * cube(x), np.array([0.5, 1.5])),
    "map, constant": lambda tw, x, of: cube(x) * tw.map(lambda v: of(2.0), cube(x).reshape(-1)).sum(),
    "nested": lambda tw, x, of: tw.fori_loop(
        0, of(2), lambda i, y: tw.cond(of(True), lambda y: tw.switch(of(1), [double, lambda y: y * x], y), cube, y), x
    ),
}  # fmt: skip

#: A Python number that a branch returns beside a tensor, and the dtype that it takes.
BESIDE: dict[str, tuple[Callable[..., Any], str]] = {
    "false": (lambda tw, p, x: tw.cond(p, lambda x: x * 2, lambda x: 1.5, x), "float64"),
    "true": (lambda tw, p, x: tw.cond(p, lambda x: 1.5, lambda x: x * 2, x), "float64"),
    "an int": (lambda tw, p, x: tw.cond(p, lambda x: 1, lambda x: x * 2, x), "float64"),
    "a bool": (lambda tw, p, x: tw.cond(p, lambda x: x * 2, lambda x: True, x), "float64"),
    "one of three": (
        lambda tw, p, x: tw.switch(p.to(tw.int64), [lambda x: 1, lambda x: 2.5, lambda x: x], x), "float64"
    ),
    "numbers": (lambda tw, p, x: tw.cond(p, lambda x: 1, lambda x: 2.5, x), "float32"),
    "numbers the other way": (lambda tw, p, x: tw.cond(p, lambda x: 2.5, lambda x: 1, x), "float32"),
    "ints": (lambda tw, p, x: tw.cond(p, lambda x: True, lambda x: 1, x), "int64"),
    "within trees": (
        lambda tw, p, x: tw.cond(p, lambda x: {"b": x, "a": 0}, lambda x: {"a": x * 2, "b": 1.5}, x)["a"], "float64"
    ),
}  # fmt: skip


def random_program(rng: np.random.Generator, depth: int = 3) -> Callable[..., Any]:
    """A program of x, of constructs in each other, in which what decides, bounds and begins is often constant.

    Returns
    -------
    ``program(tw, x, y)``, where y is what it computes on, of the shape of x, and x is captured.
    """
    if not depth:
        a, b, which = float(rng.normal()), float(rng.normal()), int(rng.integers(4))
        return lambda tw, x, y: (y * a + b, y * x, tw.sin(y) + x * b, tw.tanh(y * y) - a)[which]
    parts = [random_program(rng, depth - 1) for _ in range(3)]
    form = FORMS[list(FORMS)[int(rng.integers(4))]]
    n, low, flag, kind = int(rng.integers(-1, 4)), int(rng.integers(0, 2)), bool(rng.integers(2)), int(rng.integers(8))
    start = float(rng.normal())
    p, q, r = parts

    def chosen(tw, x, y):
        decided = form(tw, flag) if kind % 2 else y.sum() > start
        return tw.cond(decided, lambda y: p(tw, x, y), lambda y: q(tw, x, y), y)

    def switched(tw, x, y):
        return tw.switch(form(tw, n), [lambda y, f=f: f(tw, x, y) for f in parts], y)

    def number_beside(tw, x, y):
        return y * tw.cond(y.sum() > start, lambda: start, lambda: p(tw, x, y).sum())

    def counted(tw, x, y):
        return tw.fori_loop(form(tw, low), form(tw, n), lambda i, y: tw.tanh(p(tw, x, y)) * (i + 1), y)

    def carried(tw, x, y):
        total = tw.fori_loop(0, 2, lambda i, s: tw.tanh(s * 0.5 + p(tw, x, y).sum()), form(tw, start))
        return q(tw, x, y) * total

    def until(tw, x, y):
        stop = form(tw, n)
        return tw.while_loop(lambda s: s[0] < stop, lambda s: (s[0] + 1, tw.tanh(p(tw, x, s[1]))), (form(tw, 0), y))[1]

    def scanned(tw, x, y):
        step = lambda c, v: (tw.tanh(p(tw, x, c) * v), c.sum())  # noqa: E731
        last, sums = tw.scan(step, y, np.linspace(-1.0, 1.5, max(n, 0)), reverse=flag)
        return last + sums.sum()

    def mapped(tw, x, y):
        return q(tw, x, y) + tw.map(lambda v: p(tw, x, y) * v, np.array([0.5, start])).sum(0)

    construct = (chosen, chosen, switched, counted, carried, until, scanned, mapped, number_beside)[
        int(rng.integers(9))
    ]
    return lambda tw, x, y: r(tw, x, construct(tw, x, y))
