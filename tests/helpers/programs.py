"""Random programs as data: instructions over values whose shapes are known symbolically.

Shapes are tuples of names of sizes ("n", "m", "n*m", "n-1", 1), so that a program is drawn once and runs at any
sizes. Nothing in a program depends on a size in Python, so one trace serves them all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

import common.ops.functional as F
from common.control.choose import cond, switch
from common.control.iterate import fori_loop, map, scan, while_loop

UNARY = ("tanh", "sigmoid", "sin", "cos", "relu", "neg", "abs", "square", "erf", "gelu", "clone")
BINARY = ("add", "sub", "mul", "maximum", "minimum")
NUMBERS = (0.5, -1.25, 2, 0, 1, 1e-3)
KINKS = ("cond", "cast", "where", "amax", "relu", "abs", "maximum", "minimum", "ratio")
CONTROL = ("cond", "scan", "while", "fori", "map", "segments", "nested_scan", "nested_while", "nested_map")
INPUTS: dict[str, tuple[Any, ...]] = {
    "x": ("n", "m"), "y": ("n", "m"), "b": ("m",), "c": ("n", 1), "s": (), "w": ("m", "m"),
    "i": ("n",),
}  # fmt: skip
INDEX = list(INPUTS).index("i")


class Step(NamedTuple):
    """One instruction: a function of earlier values, the shape of its result."""

    name: str
    operands: tuple[int, ...]
    option: Any
    shape: tuple[Any, ...]


class Program(NamedTuple):
    """Instructions, which values are returned, which inputs are differentiated."""

    steps: tuple[Step, ...]
    outputs: tuple[int, ...]
    frozen: tuple[int, ...]

    def run(self, *inputs: Any) -> tuple[Any, ...]:
        """Run the program on tensors of either engine."""
        values = [x.detach() if i in self.frozen else x for i, x in enumerate(inputs)]
        for step in self.steps:
            values.append(_RUN[step.name](step.option, *(values[i] for i in step.operands)))
        return tuple(values[i] for i in self.outputs)


def _in_place(option: str, x: Any, y: Any) -> Any:
    z = F.clone(x)
    getattr(z, option)(y)
    return z


def _scan(flip: bool, x: Any, y: Any) -> Any:
    y = y.to(x.dtype)

    def step(h: Any, v: Any) -> Any:
        h = F.tanh(h * v + y)
        return h, h * v

    h, ys = scan(step, F.sum(x, 0), x, reverse=flip)
    return ys + h


def _while(most: int, x: Any, y: Any) -> Any:
    y = y.to(x.dtype)
    stop = F.minimum((F.sum(F.abs(y)).detach() * 0 + most), 9)
    return while_loop(lambda s: s[0] < stop, lambda s: (s[0] + 1, F.sin(s[1]) + y * 0.5), (0.0, x))[1]


def _turned(dim: int, x: Any) -> Any:
    """Two parts of x, changing places, one of them negated."""
    head, tail = F.narrow(x, dim, 0, 1), F.narrow(x, dim, 1, x.shape[dim] - 1)
    return F.cat([F.neg(tail), F.tanh(head)], dim)


def _written(option: tuple[int, str], x: Any, y: Any) -> Any:
    """x with other rows or columns, first the later ones."""
    dim, name = option
    z = F.clone(x)
    for start, size in ((1, x.shape[dim] - 1), (0, 1)):
        part = F.narrow(z, dim, start, size)
        getattr(part, name)(F.narrow(y, dim, start, size))
    return z


def _segments(size: int, x: Any, y: Any) -> Any:
    y = y.to(x.dtype)
    return scan(lambda h, v: (F.tanh(h + v) * y, h * v), F.sum(x, 0), x, checkpoint=size)[1]


def _nested_scan(flip: bool, x: Any, y: Any) -> Any:
    """A loop whose length is data, in a branch, in a scan; what decides is a counter, so it is smooth."""
    y = y.to(x.dtype)

    def step(s: Any, v: Any) -> Any:
        h, k = s
        loop = lambda h: while_loop(lambda t: t[0] < k % 3, lambda t: (t[0] + 1, F.tanh(t[1] * v) + y * 0.5), (0, h))[1]  # noqa: E731
        h = cond(k % 2 > 0, lambda h: F.sin(h) * y + v, loop, h)
        return (h, k + 1), h * v

    (h, _), ys = scan(step, (F.sum(x, 0), 0), x, reverse=flip)
    return ys + h


def _nested_while(most: int, x: Any, y: Any) -> Any:
    """A counted loop, and a choice that uses its result, inside of a loop of data-dependent length."""
    y = y.to(x.dtype)

    def body(s: Any) -> Any:
        i, h = s
        inner = fori_loop(0, 2, lambda j, t: F.sin(t + j) * y, h)
        return i + 1, switch(i, [lambda h: h + y, lambda h: inner * 0.5, lambda h: F.tanh(h) * inner], h)

    stop = F.sum(x).detach() * 0 + most
    return while_loop(lambda s: s[0] < stop, body, (0, x))[1]


def _nested_map(_: Any, x: Any, y: Any) -> Any:
    """A scan over the elements of each row, which carries what all rows see."""
    y = y.to(x.dtype)
    return map(lambda v: scan(lambda c, u: (F.sin(c * u) + c, c * u), F.sum(y), v)[1] * y, x)


_RUN: dict[str, Any] = {
    "segments": _segments,
    "nested_scan": _nested_scan,
    "nested_while": _nested_while,
    "nested_map": _nested_map,
    "turned": _turned,
    "written": _written,
    "parts": lambda dim, x, y: F.narrow(x, dim, 0, y.shape[dim]) * F.sin(F.narrow(x, dim, y.shape[dim], y.shape[dim])),
    "between": lambda dim, x: F.narrow(x, dim, 1, x.shape[dim] - 1) - F.narrow(x, dim, 0, x.shape[dim] - 1),
    "stack": lambda option, x, y: F.sum(F.stack([x, y], option[0]), option[1]),
    "bordered": lambda value, x: F.pad(x, (1, 2), value=value),
    "cond": lambda _, x, y: cond(F.sum(x) > F.sum(y), lambda a: F.sin(a) * y, lambda a: a - F.square(y), x),
    "scan": _scan,
    "while": _while,
    "fori": lambda n, x, y: fori_loop(1, n, lambda i, s: (s[0] * y.to(x.dtype) + i, F.sin(s[0]) + s[1]), (x, x))[1],
    "map": lambda _, x, y: map(lambda v: F.softmax(v, -1) * y, x),
    "unary": lambda name, x: getattr(F, name)(x),
    "binary": lambda name, x, y: getattr(F, name)(x, y),
    "ratio": lambda _, x, y: x / (F.abs(y) + 0.5),
    "number": lambda option, x: option[1] * x if option[0] else x - option[1],
    "where": lambda _, x, y: F.where(x > y, y, x),
    "sum": lambda option, x: F.sum(x, *option),
    "mean": lambda option, x: F.mean(x, *option),
    "amax": lambda option, x: F.amax(x, *option),
    "transpose": lambda _, x: F.transpose(x, 0, 1),
    "flatten": lambda _, x: F.reshape(x, -1),
    "rows": lambda option, x: x[option],
    "softmax": lambda _, x: F.softmax(x, -1),
    "log_softmax": lambda _, x: F.log_softmax(x, -1),
    "logsumexp": lambda _, x: F.logsumexp(x, -1, True),
    "layer_norm": lambda _, x: F.layer_norm(x, x.shape[-1]),
    "mm": lambda _, x, y: F.mm(x, y.to(x.dtype)),
    "cat": lambda dim, x, y: F.cat([x, y], dim),
    "cross_entropy": lambda how, x, i: F.cross_entropy(x, i, reduction=how),
    "index_select": lambda _, x, i: F.index_select(x, 0, i),
    "put": lambda name, x, y, i: getattr(F, name)(x, 0, i, y.to(x.dtype)),
    "gather": lambda _, x, i: F.gather(x, 1, F.unsqueeze(i, 1)),
    "scatter_add": lambda _, x, i: F.scatter_add(F.zeros_like(x[0]), 0, i, F.sum(x, 1)),
    "cast": lambda dtype, x: x.to(np.dtype(dtype)),
    "in_place": _in_place,
}


def _broadcast(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...] | None:
    width = max(len(a), len(b))
    pairs = zip((1,) * (width - len(a)) + a, (1,) * (width - len(b)) + b, strict=True)
    out = [m if n == 1 else n if m == 1 or m == n else None for m, n in pairs]
    return None if None in out else tuple(out)


def _candidates(i: int, j: int, a: tuple[Any, ...], b: tuple[Any, ...], pick: int) -> list[Step]:
    """Every instruction that fits two values, `pick` choosing among variants."""
    steps = [Step("unary", (i,), UNARY[pick % len(UNARY)], a)] * 3
    steps.append(Step("number", (i,), (pick % 2, NUMBERS[pick % len(NUMBERS)]), a))
    steps.append(Step("cast", (i,), ("float32", "float64")[pick % 2], a))
    both = _broadcast(a, b)
    if both is not None:
        steps += [Step("binary", (i, j), BINARY[pick % len(BINARY)], both)] * 3
        steps += [Step("ratio", (i, j), None, both), Step("where", (i, j), None, both)]
        if both == a:
            steps.append(Step("cond", (i, j), None, a))
            steps.append(Step("while", (i, j), pick % 4, a))
            steps.append(Step("fori", (i, j), pick % 4, a))
            steps.append(Step("nested_while", (i, j), pick % 5, a))
            steps.append(Step("in_place", (i, j), ("add_", "mul_")[pick % 2], a))
    if a:
        dim, keep = pick % len(a), bool(pick & 1)
        kept = tuple(1 if d == dim else n for d, n in enumerate(a))
        shape = kept if keep else tuple(n for d, n in enumerate(a) if d != dim)
        reducers = ("sum", "mean") if "-1" in str(a[dim]) else ("sum", "mean", "amax")  # of nothing: no maximum
        steps += [Step(name, (i,), (dim, keep), shape) for name in reducers]
        steps.append(Step("logsumexp", (i,), None, (*a[:-1], 1)))
        steps += [Step(name, (i,), None, a) for name in ("softmax", "log_softmax")]
        if a[-1] != 1 and "-1" not in str(a[-1]):
            steps.append(Step("layer_norm", (i,), None, a))
    if len(a) == 2:
        steps += [Step("transpose", (i,), None, a[::-1])] * 2
        if 1 not in a:
            steps.append(Step("flatten", (i,), None, (f"{a[0]}*{a[1]}",)))
        if a[0] == "n":
            steps.append(Step("rows", (i,), slice(1, None), ("n-1", a[1])))
        if a == ("n", "m"):
            how = ("mean", "sum", "none")[pick % 3]
            steps.append(Step("cross_entropy", (i, INDEX), how, ("n",) if how == "none" else ()))
            steps.append(Step("gather", (i, INDEX), None, ("n", 1)))
            steps.append(Step("scatter_add", (i, INDEX), None, ("m",)))
        if len(b) == 2 and a[1] == b[0]:
            steps += [Step("mm", (i, j), None, (a[0], b[1]))] * 2
    if len(a) == 2 and b == a[1:]:
        flip = bool(pick & 1)
        steps += [Step(name, (i, j), flip, a) for name in ("scan", "scan", "nested_scan", "nested_scan")]
        steps += [Step("map", (i, j), None, a), Step("nested_map", (i, j), None, a)]
        steps.append(Step("segments", (i, j), 1 + pick % 3, a))
    if a:
        dim = pick % len(a)
        cut = a[dim] != 1 and "-1" not in str(a[dim])  # a part of size 1 is another program
        if cut:
            steps += [Step("turned", (i,), dim, a)] * 2
        if a[dim] == "n":
            steps.append(Step("between", (i,), dim, (*a[:dim], "n-1", *a[dim + 1 :])))
        if a == b and cut:
            steps += [Step("written", (i, j), (dim, ("copy_", "mul_")[pick % 2]), a)] * 2
            both, summed = (*a[:dim], 2, *a[dim:]), pick % 3 % (len(a) + 1)
            steps.append(Step("stack", (i, j), (dim, summed), (*both[:summed], *both[summed + 1 :])))
        if a[-1] in ("n", "m"):
            steps.append(Step("bordered", (i,), NUMBERS[pick % len(NUMBERS)], (*a[:-1], f"{a[-1]}+3")))
        if b and a == (*b[:-1], f"2*{b[-1]}"):
            steps += [Step("parts", (i, j), len(a) - 1, b)] * 3
    if a and a[0] == "m":
        steps.append(Step("index_select", (i, INDEX), None, ("n", *a[1:])))
        if b == ("n", *a[1:]):
            steps += [Step("put", (i, j, INDEX), ("index_add", "index_copy")[pick % 2], a)] * 3
    if a == b and a:
        steps.append(Step("cat", (i, j), len(a) - 1, (*a[:-1], f"2*{a[-1]}")))
    return steps


@st.composite
def programs(draw: Any, smooth: bool = False, most: int = 14, control: bool = False) -> Program:
    """Programs of 3 to `most` instructions; later values are preferred as operands: they form a DAG, not a list.

    Parameters
    ----------
    smooth : leave out what has kinks or rounds to float32, so that differences can be taken.
    control : control flow wherever it fits.
    """
    shapes = list(INPUTS.values())
    steps: list[Step] = []
    for _ in range(draw(st.integers(3, most))):
        last = len(shapes) - 1
        i = last - draw(st.integers(0, min(last, 6)))
        j = last - draw(st.integers(0, last))
        i, j = (0 if k == INDEX else k for k in (i, j))
        candidates = _candidates(i, j, shapes[i], shapes[j], draw(st.integers(0, 59)))
        if smooth:
            candidates = [c for c in candidates if c.name not in KINKS and c.option not in KINKS]
        if control and any(c.name in CONTROL for c in candidates):
            candidates = [c for c in candidates if c.name in CONTROL]
        if candidates:
            steps.append(candidates[draw(st.integers(0, len(candidates) - 1))])
            shapes.append(steps[-1].shape)
    steps = steps or [Step("unary", (0,), "tanh", shapes[0])]
    shapes = shapes if len(shapes) > len(INPUTS) else [*shapes, shapes[0]]
    made = range(len(INPUTS), len(shapes))
    outputs = draw(st.lists(st.sampled_from(made), min_size=1, max_size=3, unique=True))
    frozen = draw(st.sets(st.integers(0, INDEX - 1), max_size=3))
    return Program(tuple(steps), tuple(dict.fromkeys((*outputs, len(shapes) - 1))), tuple(sorted(frozen)))


def inputs(rng: np.random.Generator, n: int, m: int, dtype: str) -> list[np.ndarray]:
    """Arrays for the inputs of every program; dtypes differ where "mixed"."""
    sizes = {"n": n, "m": m, 1: 1}
    kinds = ["float32", "float64"] if dtype == "mixed" else [dtype, dtype]
    return [
        rng.integers(0, m, n)
        if name == "i"
        else np.asarray(rng.normal(size=tuple(sizes[d] for d in shape)), kinds[i % 2])
        for i, (name, shape) in enumerate(INPUTS.items())
    ]
