"""The order in which a program runs, of random programs with products and their gradients."""

import random

import numpy as np
import pytest

import static
from static.lowering.layout import lay_out
from static.program import compile_graph

SIZE = 96
"""More elements per array than `static.lowering.later` takes for small."""


def random_program(seed):
    """A function of three square arrays: some products, rows, and sums of columns; every other one with gradients."""

    def program(*arrays):
        draw, length = random.Random(seed), 4 + seed % 22

        def run(*arrays):
            values = list(arrays)
            for _ in range(length):
                a, b = draw.choice(values[-6:]), draw.choice(values[-6:])
                steps = [
                    lambda a, b: a @ b, lambda a, b: a @ b, lambda a, b: static.tanh(a), lambda a, b: a + b,
                    lambda a, b: a * b, lambda a, b: static.softmax(a, 1), lambda a, b: a - a.mean(1, keepdim=True),
                    lambda a, b: static.exp(-a * a) + b, lambda a, b: a * b.sum(0),
                ]  # fmt: skip
                values.append(draw.choice(steps)(a, b) * 0.01)
            return values

        if seed % 2:
            return run(*arrays)[-3:]
        return static.value_and_grad(lambda *x: sum(v.sum() for v in run(*x)[-4:]), (0, 1, 2))(*arrays)

    return program


def traced(seed):
    """Its graph and sizes."""
    arrays = [np.ones((SIZE, SIZE), np.float32) for _ in range(3)]
    f = static.function(random_program(seed), interpret=True)
    f(*arrays)
    return f.newest.graph, f.newest.env(arrays)


def arenas(graph, env):
    """Bytes for temporaries of the program, and of one kernel per node in program order."""
    return [lay_out(compile_graph(graph, fuse=fuse), env).total for fuse in (True, False)]


def deep(x, w, v):
    for _ in range(8):
        x = x + static.tanh(x @ w + v)
    return x


def shared(x, w, v):
    """The gradient of each weight is a sum of products that come one by one."""
    return static.relu(static.relu(static.relu(x @ w) @ v) @ w) @ v


def attention(x, w, v):
    for _ in range(2):
        x = x + static.softmax((x @ w) @ (x @ v).T, 1) @ (x @ w)
        x = x + static.nn.functional.gelu(static.layer_norm(x, (SIZE,)) @ w) @ v
    return x


def recurrent(x, w, v):
    h = x
    for k in range(6):
        h = static.sigmoid(h @ w + x) * h + static.tanh(h @ v) * (k + 1)
    return h


@pytest.mark.parametrize("network", [deep, shared, attention, recurrent])
def test_gradients_take_no_more_than_in_program_order(network):
    arrays = [np.ones((SIZE, SIZE), np.float32) for _ in range(3)]
    f = static.function(static.value_and_grad(lambda *x: (network(*x) ** 2).sum(), argnums=(0, 1, 2)), interpret=True)
    f(*arrays)
    ours, in_order = arenas(f.newest.graph, f.newest.env(arrays))
    assert ours <= in_order


@pytest.mark.parametrize("seeds", [range(i, i + 10) for i in range(0, 80, 10)], ids=str)
def test_random_programs(seeds):
    """There is an order, and fusion takes less memory, though not for each: a row is read before it is overwritten."""
    both = [arenas(*traced(seed)) for seed in seeds]
    assert all(ours <= 1.25 * in_order for ours, in_order in both)
    assert sum(ours for ours, _ in both) < 0.98 * sum(in_order for _, in_order in both)
