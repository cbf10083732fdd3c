"""Programs with control flow, as functions of tensors that both engines run: (name, function, arrays)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import common.ops.functional as F
from common.api import surface
from common.core import pytrees as tree_util

cond, switch, while_loop = (surface.CONTROL[name] for name in ("cond", "switch", "while_loop"))
fori_loop, scan, map_ = (surface.CONTROL[name] for name in ("fori_loop", "scan", "map"))
associative_scan = surface.CONTROL["associative_scan"]


class Case(NamedTuple):
    """A program.

    Attributes
    ----------
    run : of tensors.
    shapes : of its operands, ints for an operand that is an integer.
    twice : whether its second derivatives are compared with differences.
    """

    run: Callable[..., Any]
    shapes: tuple[Any, ...]
    twice: bool = True

    def arrays(self, rng: np.random.Generator, dtype: Any, most: int = 1 << 20) -> list[np.ndarray]:
        """Operands; integers, which may be numbers of iterations, are `most` at most."""
        return [
            np.array(min(s, most)) if isinstance(s, int) else np.asarray(rng.normal(size=s) * 0.5, dtype)
            for s in self.shapes
        ]


XW, XWN = ((5, 4), (4, 4)), lambda n: ((5, 4), (4, 4), n)


def taken(x, w, n):
    return cond(n > 2, lambda x: F.tanh(x @ w) * x, lambda x: x * x * 0.5, x)


def captured_and_after(x, w):
    y = cond(x.sum() > 100, lambda: x @ w, lambda: x * w.sum() * w.sum())
    return y * w.sum() + x * y


def several(x, w, n):
    parts = switch(n, [lambda a, b: {"p": a @ b, "q": (a,)}, lambda a, b: {"q": (a * a,), "p": a},
                       lambda a, b: {"p": F.sin(a), "q": (a * b.sum(),)}], x, w)  # fmt: skip
    return parts["p"] * parts["q"][0]


def data_decides(x, w):
    return while_loop(lambda s: (s * s).sum() < 50, lambda s: s * 1.25 + F.sin(s @ w) * 0.1, x)


def long_run(x, w):
    stop = (x * 0).sum() + 150
    return while_loop(lambda s: s[0] < stop, lambda s: (s[0] + 1, F.sin(s[1]) + x * w.sum() * 0.01), (0.0, x))[1]


def never(x, w):
    return while_loop(lambda s: (s * s).sum() < -1, lambda s: s @ w * w.sum(), x) * w.sum()


def thinned(x, w):
    def body(s):
        i, h, kept = s
        return i + 1, F.sin(h @ w) + h * 1.125, kept * (i + 1)

    _, h, kept = while_loop(lambda s: (s[1] * s[1]).sum() < 60, body, (0, x, 1.0), checkpoint=4)
    return h * w.sum() + x * 0.5 * kept.detach().sign()


def thinned_long_run(x, w):
    stop = (x * 0).sum() + 150
    start, body = (0.0, x), lambda s: (s[0] + 1, F.sin(s[1]) + x * w.sum() * 0.01)
    return while_loop(lambda s: s[0] < stop, body, start, checkpoint=7)[1]


def thinned_never(x, w):
    return while_loop(lambda s: (s * s).sum() < -1, lambda s: s @ w * w.sum(), x, checkpoint=3) * w.sum()


def thinned_inside(x, w, n):
    """Loops inside the function of such a loop, which is inside another loop; what it captures is carried by that."""

    def inner(i, s):
        more = lambda t: (t[0] + 1, F.sin(t[1] @ w) + fori_loop(0, t[0] % 2, lambda _, v: v * 0.5, s))  # noqa: E731
        return while_loop(lambda t: t[0] < 2 * i + 1, more, (0, s * 0.5), checkpoint=2)[1]

    return fori_loop(0, n, inner, x)


def newton(x, w):
    target = F.exp(x) + w.sum() * w.sum()

    def body(s):
        y, _ = s
        new = 0.5 * (y + target / y)
        return new, F.amax(F.abs(new - y).detach())

    return while_loop(lambda s: s[1] > 1e-3, body, (target, (x * 0).sum() + 1.0))[0]


def recurrence(x, w):
    def step(h, v):
        h = F.tanh(h @ w + v) * w.sum()
        return h, (h * 2, {"v": v * h})

    h, (a, rest) = scan(step, x[0], x)
    return h, a * rest["v"], h * w[0]


def backwards(x, w):
    h, ys = scan(lambda h, v: (h * v + w[1], h * h), x[0] * 0 + 1, x, reverse=True)
    return ys * h


def no_rows(x, w):
    h, ys = scan(lambda h, v: (F.tanh(h @ w), v), x[0] * w.sum(), x[5:])
    return h, ys.sum()


def without_xs(x, w):
    return scan(lambda h, _: (F.sin(h @ w) + h, h.sum()), x, length=4)


def only_some(x, w):
    """Of what is carried one value is not used, one is handed through, one does not depend on the operands."""

    def step(s, v):
        a, b, c, i = s
        return (b * v, a + v, c * 0.5, i + 1), (a * c + i)

    (a, _, _, _), ys = scan(step, (x[0], x[1], F.ones_like(x[0]), 3), x)
    return a, ys * w.sum()


def in_segments(x, w):
    return scan(lambda h, v: (F.tanh(h @ w + v), (h * v, None)), x[0], x, checkpoint=2)


def in_segments_backwards(x, w):
    return scan(lambda h, v: (F.tanh(h @ w + v), h * v), x[0], x, reverse=True, checkpoint=3)


def negative_zeros(x, w):
    """All contributions to w are zeros of both signs; their totals begin with +0.0."""
    return fori_loop(0, 2, lambda _, s: s + w * -0.0, x[:4])


def counted(x, w):
    return fori_loop(2, 6, lambda i, s: F.sin(s @ w) * (i + 1) + x, x)


def counted_by_data(x, w, n):
    return fori_loop(n - 2, n + 1, lambda i, s: (s[0] * (w[0] + i) * 0.5, s[0] + s[1]), (x, x * 2))[1]


def rows(x, w):
    return map_(lambda v: {"a": cond(v.sum() > 0, lambda: v @ w, lambda: v * w[0]), "b": v[0]}, x)["a"]


def nested(x, w, n):
    def outer(i, s):
        inner = while_loop(lambda t: t[0] < i + 1, lambda t: (t[0] + 1, F.sin(t[1] * w.sum()) + s * 0.5), (0, s))[1]
        return cond((i > 0) & (s.sum() < 100), lambda a: a * x, lambda a: a + scan(
            lambda h, v: (h * 0.5 + v, None), a[0], x)[0], inner)  # fmt: skip

    return fori_loop(0, n, outer, x)


def inner_gradient(x, w):
    """Gradient descent in a loop: the gradient of a loss is taken inside, and differentiated outside."""
    grad = surface.TRANSFORMS["grad"]
    loss = lambda p: ((x @ p - x) * (x @ p - x)).mean()  # noqa: E731
    return fori_loop(0, 3, lambda _, p: p - 0.1 * grad(loss)(p), w)


def handed_through(x, w):
    """Results that are operands or captured themselves."""
    a = cond(x.sum() > 100, lambda x: (x, w), lambda x: (x, w), x)
    b = scan(lambda h, v: (w, v), w, x)
    return a[0] * 2, a[1] @ w, b[0] * 3, b[1] * x


def joined(x, w):
    """Affine maps, composed from both ends."""
    ahead = associative_scan(lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (x, x * w.sum()))
    behind = associative_scan(lambda a, b: {"p": F.sin(a["p"]) @ w + b["p"]}, {"p": x}, reverse=True)["p"]
    return ahead[1] * behind, associative_scan(F.mul, x @ w, axis=-1)


def moved(x, w, n):
    """A window of a running state, read and written where the data say."""

    def body(i, s):
        part = F.dynamic_slice(s, (i - n, n), (2, 3))
        s = F.dynamic_update_slice(s, F.sin(part) * w.sum(), (n, i))
        return F.dynamic_update_index_in_dim(s, F.dynamic_index_in_dim(s, i, 1, False) * w[0, 0], n, 1)

    return fori_loop(0, n, body, x) * F.dynamic_slice_in_dim(w, n, 1, 1).sum()


def numbers(x, w):
    """States, rows and stacks of numbers, what is captured, exchanged, and bools."""

    def step(s, v):
        a, b, up, i = s
        return (b, F.sin(a * v[1]) + w[1, 3] * v[0] * i, up ^ (a > b), i + 1), (a, F.where(up, a * b, v[2]))

    (a, b, _, i), (own, chosen) = scan(step, (x[0, 0], w[1, 1] * 2, x[1, 1] > 0, 0), x, reverse=True)
    return a * b * i, own * chosen


def numbers_in_turn(x, w):
    """Nothing is computed."""
    (a, b), (c, d) = scan(lambda s, _: ((s[1], s[0]), (s[1], s[0])), (x[0, 0], w[0, 0]), length=3)
    return a, b * w, c, d


def numbers_until(x, w):
    """Data end it, after more iterations than there is room for at first."""
    stop = (x * 0).sum() + 150
    count, y = while_loop(lambda s: s[0] < stop, lambda s: (s[0] + 1, F.sin(s[1] * w[0, 1]) + x[2, 0]), (0.0, x[0, 1]))
    return y * w + count


def numbers_counted(x, w, n):
    """More iterations than one call of the kernel makes."""
    return fori_loop(2, n, lambda i, s: s * 0.99 + x[1, 2] * w[2, 2] * (i % 3), w[0, 0])


class Affine:
    """A node of trees."""

    def __init__(self, slope, shift, kind):
        self.slope, self.shift, self.kind = slope, shift, kind

    def tree_flatten(self):
        return (self.slope, {"shift": self.shift}), self.kind

    @classmethod
    def tree_unflatten(cls, data, children):
        return cls(children[0], children[1]["shift"], data)


tree_util.register_pytree_node_class(Affine)


def own_nodes(x, w):
    """Objects of a class of one's own through every construct."""
    start = Affine(w, w[0] * 0.5, "map")
    step = lambda m, v: (Affine(m.slope * 0.75, m.shift + v, m.kind), Affine(m.shift * v, v @ m.slope, m.kind))  # noqa: E731
    last, all_ = scan(step, start, x)
    chosen = cond(x.sum() > 0, lambda m: m, lambda m: Affine(m.slope * 2, m.shift, m.kind), last)
    more = while_loop(lambda m: m.shift.sum() < 3, lambda m: Affine(m.slope, F.abs(m.shift) + 1, m.kind), chosen)
    return all_.slope * all_.shift, more.shift @ more.slope


CASES: dict[str, Case] = {
    "cond, first": Case(taken, XWN(3)),
    "cond, second": Case(taken, XWN(0)),
    "captured, used after": Case(captured_and_after, XW),
    **{f"switch {n}": Case(several, XWN(n)) for n in (-4, 0, 1, 2, 9)},
    "while_loop": Case(data_decides, XW),
    "while_loop of 150": Case(long_run, XW),
    "while_loop, no iteration": Case(never, XW),
    "while_loop, thinned": Case(thinned, XW),
    "while_loop of 150, thinned": Case(thinned_long_run, XW),
    "while_loop, thinned, no iteration": Case(thinned_never, XW),
    "while_loop, thinned, nested": Case(thinned_inside, XWN(3)),
    "Newton": Case(newton, XW, twice=False),
    "scan": Case(recurrence, XW),
    "scan, reverse": Case(backwards, XW),
    "scan of nothing": Case(no_rows, XW),
    "scan without xs": Case(without_xs, XW),
    "scan, unused parts": Case(only_some, XW),
    "scan in segments": Case(lambda x, w: in_segments(x, w)[0], XW),
    "scan in segments, reverse": Case(in_segments_backwards, XW),
    "negative zeros": Case(negative_zeros, XW),
    "fori_loop": Case(counted, XW),
    "fori_loop, bounds are data": Case(counted_by_data, XWN(4)),
    "fori_loop, empty": Case(counted_by_data, XWN(-9)),
    "numbers": Case(numbers, XW),
    "numbers in turn": Case(numbers_in_turn, XW),
    "numbers, while": Case(numbers_until, XW),
    "numbers, counted": Case(numbers_counted, XWN(4100), twice=False),
    "map": Case(rows, XW),
    "nested": Case(nested, XWN(3)),
    "gradient inside": Case(inner_gradient, XW),
    "handed through": Case(handed_through, XW),
    "associative_scan": Case(joined, XW),
    "dynamic slices": Case(moved, XWN(2)),
    "own nodes": Case(own_nodes, XW),
}  # fmt: skip
