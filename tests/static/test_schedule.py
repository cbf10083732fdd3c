"""The order in which a program runs, of random programs with products and their gradients."""

import random

import numpy as np
import pytest

import static
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


@pytest.mark.parametrize("seeds", [range(i, i + 10) for i in range(0, 80, 10)], ids=str)
def test_there_is_an_order(seeds):
    """Groups that could only run one before the other, in both directions, are never made."""
    for seed in seeds:
        assert compile_graph(traced(seed)[0]).groups
