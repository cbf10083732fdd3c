"""Random programs: every step is drawn by name, so a failure prints as a program that can be read."""

from __future__ import annotations

import numpy as np

from common.ops.index import gather
from common.ops.index.getitem import getitem
from common.ops.linalg import matmul
from common.ops.math import cast, compare, transcendental
from common.ops.math.arithmetic import neg, rsqrt, square
from common.ops.reduce import reductions, softmax
from common.ops.shape import cat, view

UNARY = [neg, transcendental.tanh, transcendental.exp, square, compare.relu, rsqrt]


class Draw:
    """A program being drawn: values so far, and the text of the steps.

    Parameters
    ----------
    choose : ``choose(n) -> int`` in [0, n).
    """

    def __init__(self, choose, values):
        self.choose, self.values, self.steps = choose, list(values), []

    def pick(self, items):
        return items[self.choose(len(items))]

    def operand(self):
        return self.pick(self.values)

    def add(self, value, text):
        self.values.append(value)
        self.steps.append(f"v{len(self.values) - 1} = {text}")

    def step(self):
        kind = self.pick(STEPS)
        kind(self)


def floating(x):
    return x if x.dtype.kind == "f" else cast.to(x, dtype=np.dtype(np.float32), x_dtype=x.dtype)


def unary(d):
    op = d.pick(UNARY)
    d.add(op(floating(d.operand())), op.name)


def binary(d):
    x = d.operand()
    fitting = [y for y in d.values if fits(x.shape, y.shape)]
    y = d.pick(fitting)
    name = d.pick(["add", "sub", "mul", "div", "maximum", "where"])
    if name == "where":
        d.add(compare.where(compare.gt(floating(x), 0.25), x, y), "where")
    elif name == "maximum":
        d.add(compare.maximum(x, y), name)
    elif name == "div":
        d.add(floating(x) / floating(y), name)
    else:
        d.add({"add": lambda: x + y, "sub": lambda: floating(x) - y, "mul": lambda: x * y}[name](), name)


def number(d):
    d.add(d.operand() * d.pick([0.5, 3, -1.25]), "number")


def fits(a, b):
    """Whether two shapes broadcast, by their sizes in this trace and without a guard on equality with 1."""
    pairs = zip(reversed(a), reversed(b), strict=False)
    return all(literal_one(m) or literal_one(n) or known(m) == known(n) for m, n in pairs)


def literal_one(n):
    return isinstance(n, int) and n == 1


def known(n):
    return n if isinstance(n, int) else n.hint


def reduction(d):
    x = d.operand()
    if x.ndim == 0:
        return
    dims = tuple(i for i in range(x.ndim) if d.choose(2)) or (d.choose(x.ndim),)
    how = d.pick([reductions.sum, reductions.sum, reductions.amax, reductions.amin])
    keep = bool(d.choose(2))
    d.add(how(x, dims, keep), f"{how.__name__}({dims}, {keep})")


def permute(d):
    x = d.operand()
    if x.ndim > 1:
        order = list(range(x.ndim))
        order = order[d.choose(x.ndim) :] + order[: d.choose(x.ndim)]
        if sorted(order) == list(range(x.ndim)):
            d.add(view.permute(x, *order), f"permute({order})")


def unsqueeze(d):
    x = d.operand()
    if x.ndim < 3:
        d.add(view.unsqueeze(x, d.choose(x.ndim + 1)), "unsqueeze")


def flatten(d):
    x = d.operand()
    if x.ndim > 1:
        d.add(view.flatten(x), "flatten")


def part(d):
    x = d.operand()
    if x.ndim and known(x.shape[0]) > 2:
        d.add(getitem(x, slice(1, None, d.pick([1, 2]))), "slice")


def rows(d):
    x = floating(d.operand())
    if x.ndim:
        how = d.pick(["softmax", "log_softmax", "normalize"])
        if how == "normalize":
            d.add(softmax.normalize_(x, dim=(x.ndim - 1,), eps=1e-5)[0], how)
        else:
            d.add(getattr(softmax, how)(x, -1), how)


def indexed(d):
    x = d.operand()
    if x.ndim == 2:
        where = cast.to(square(floating(reductions.sum(x, -1))) * 0, dtype=np.dtype(np.int64), x_dtype=x.dtype)
        picked = gather.pick(x, where)
        d.add(picked, "pick")
        d.add(gather.spread(picked, where, extent=x.shape[1]), "spread")


def product(d):
    x = floating(d.operand())
    if x.ndim == 2:
        d.add(matmul.mm_(x, x, trans_a=True, trans_b=False), "mm")


def joined(d):
    x = d.operand()
    if x.ndim:
        d.add(cat.cat([x, x], d.choose(x.ndim)), "cat")


STEPS = [unary, unary, binary, binary, binary, number, reduction, reduction, permute, unsqueeze, flatten, part, rows,
         indexed, product, joined]  # fmt: skip


def draw_program(choose, length=10, returned=3):
    """A function of arrays that runs a random program; it draws the same program every time it is called."""
    tape = []

    def replay():
        position = iter(range(len(tape)))

        def again(n):
            i = next(position, None)
            if i is None:
                tape.append(choose(1 << 16))
                return tape[-1] % n
            return tape[i] % n

        return again

    def program(*arrays):
        d = Draw(replay(), arrays)
        for _ in range(length):
            d.step()
        program.steps = d.steps
        return tuple(d.values[-returned:])

    program.steps = []
    return program


def draw_writes(choose, values, states):
    """New values for states: each some value of the same shape and dtype, the old value of another one included."""
    new = []
    for state in states:
        same = [
            v
            for v in values
            if v.dtype == state.dtype and len(v.shape) == len(state.shape)
            and all(known(m) == known(n) and literal_one(m) == literal_one(n) for m, n in zip(v.shape, state.shape))
        ]  # fmt: skip
        recent = same[-6:]
        new.append(recent[choose(len(recent))])
    return new
