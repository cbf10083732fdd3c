"""Arguments that are views of one tensor: a compiled function gives the eager result, or says why it cannot."""

from __future__ import annotations

import random

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import ArgumentError
from tests.helpers.proofs import each

VIEWS = {
    "all": lambda x: x, "again": lambda x: x.detach(), "flat": lambda x: x.view(-1), "top": lambda x: x[:2],
    "bottom": lambda x: x[2:], "middle": lambda x: x[1:3], "left": lambda x: x[:, :1], "right": lambda x: x[:, 1:],
    "even": lambda x: x.view(-1)[::2], "odd": lambda x: x.view(-1)[1::2], "turned": lambda x: x.t(),
    "another": lambda x: x.clone(),
}  # fmt: skip


def program(steps):
    def f(*xs):
        total = 0.0
        for number, (what, i) in enumerate(steps, start=2):
            if what == "write":
                xs[i].mul_(number)
            else:
                total = total * 3 + (xs[i] * number).sum()
        return total

    return f


def refused(steps, names):
    """Whether an argument overlaps one that was written before it is used, or that is written too."""
    places = [set(VIEWS[name](dynamic.arange(12.0).view(4, 3)).reshape(-1).int().tolist()) for name in names]
    places = [{-1 - i} if name == "another" else place for i, (name, place) in enumerate(zip(names, places))]
    written = set()
    for what, i in steps:
        if any(i != j and places[i] & places[j] for j in written):
            return True
        if what == "write":
            written.add(i)
    every = {i for what, i in steps if what == "write"}
    return any(i != j and places[i] & places[j] for i in every for j in every)


def run(tw, f, names):
    base = tw.arange(12.0).view(4, 3).clone()
    return f(*(VIEWS[name](base) for name in names)).item(), base.tolist()


@each("seed", range(60))
def test_random_programs(seed):
    rng = random.Random(seed)
    names = rng.sample(sorted(VIEWS), 3)
    steps = [(rng.choice(("write", "read", "read")), rng.randrange(3)) for _ in range(rng.randint(2, 5))]
    steps.append(("read", 0))
    compiled = static.function(program(steps), interpret=seed % 4 > 0)
    if refused(steps, names):
        with pytest.raises(ArgumentError, match=r"f\(\) writes to arg\d .*arg\d, which shares memory .* copy \(.clone"):
            run(static, compiled, names)
    else:
        assert run(static, compiled, names) == run(dynamic, dynamic.function(program(steps)), names)


def test_state_and_gradients_too():
    x = static.ones(4)
    part, weight = x[:2], static.nn.Parameter(static.ones(3))
    data = weight.detach()
    optimizer = static.optim.SGD([weight], lr=0.5)

    @static.function
    def captured():
        part.add_(1)
        return x * 2

    @static.function
    def step():
        weight.square().sum().backward()
        optimizer.step()
        return data * 1

    @static.function
    def recorded(x, y, w):
        z = (y * w).sum()
        x.add_(1)
        return z

    with pytest.raises(ArgumentError, match=r"captured\(\) writes to .* and then uses"):
        captured()
    with pytest.raises(ArgumentError, match=r"step\(\) writes to .* and then uses"):
        step()
    with pytest.raises(ArgumentError, match=r"recorded\(\) writes to .* and then uses"):  # by a gradient
        recorded(x, x[:2], static.ones(2, requires_grad=True))
    assert recorded(x, x[:2].clone(), static.ones(2, requires_grad=True)).item() == 2
    assert (x.tolist(), weight.tolist()) == ([2.0] * 4, [1.0] * 3)


def test_arrays_of_numpy_too():
    n = np.arange(4.0)
    f = static.function(program([("write", 0), ("read", 1)]))
    with pytest.raises(ArgumentError, match="take its views inside the function"):
        f(n, n[:2])
    assert n.tolist() == [0, 1, 2, 3]
    assert (f(n[:2], n[2:]).item(), n.tolist()) == (15, [0, 2, 2, 3])
