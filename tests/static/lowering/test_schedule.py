"""The memory that a program takes, beside that of one kernel per node in program order, and of the eager engine."""

import random
import tracemalloc

import numpy as np
import pytest

import dynamic
import static
from common.core.sizes import resolve
from static.lowering.memory.layout import lay_out
from static.running.executable import compile_graph

SIZE = 96
"""More elements per array than `static.lowering.fusion.merge_policy` takes for small."""
SHAPES = [(64, 512), (1030, 130), (2048, 24), (8, 4096), (3, 20000), (5000, 3)]


def random_program(seed, tw=static):
    """A function of three square arrays: some products, rows, and sums of columns; every other one with gradients."""

    def program(*arrays):
        draw, length = random.Random(seed), 4 + seed % 22

        def run(*arrays):
            values = list(arrays)
            for _ in range(length):
                a, b = draw.choice(values[-6:]), draw.choice(values[-6:])
                steps = [
                    lambda a, b: a @ b, lambda a, b: a @ b, lambda a, b: tw.tanh(a), lambda a, b: a + b,
                    lambda a, b: a * b, lambda a, b: tw.softmax(a, 1), lambda a, b: a - a.mean(1, keepdim=True),
                    lambda a, b: tw.exp(-a * a) + b, lambda a, b: a * b.sum(0),
                ]  # fmt: skip
                values.append(draw.choice(steps)(a, b) * 0.01)
            return values

        if seed % 2:
            return run(*arrays)[-3:]
        return tw.value_and_grad(lambda *x: sum(v.sum() for v in run(*x)[-4:]), (0, 1, 2))(*arrays)

    return program


def oblong_program(seed):
    """A function of two arrays of one shape and a square one, with rows and columns of all kinds."""
    choose = random.Random(seed)
    shape = choose.choice(SHAPES)
    columns = shape[1]
    length, near = choose.randrange(3, 36), choose.choice([3, 6, 12])
    products = [lambda a, b, w: a @ w] * 2 * (columns <= 512) + [lambda a, b, w: (a @ b.T) @ a] * (max(shape) <= 512)
    steps = [
        lambda a, b, w: static.tanh(a), lambda a, b, w: a + b, lambda a, b, w: static.softmax(a * b, 1),
        lambda a, b, w: a - b.mean(1, keepdim=True), lambda a, b, w: a * b.sum(0), lambda a, b, w: a * b.mean(),
        lambda a, b, w: static.layer_norm(a, (columns,)) * b, lambda a, b, w: static.where(a > b, a, b * 2),
        lambda a, b, w: a / (1 + (b * b).sum(1, keepdim=True)), lambda a, b, w: a * (b.amax(0) - b.amin(0)),
        lambda a, b, w: static.cat([a[1:], b[:1]], 0), lambda a, b, w: a.cumsum(0) + b, lambda a, b, w: a.flip(0),
        *products,
    ]  # fmt: skip

    def run(x, y, w):
        draw, values = random.Random(seed), [x, y]
        for _ in range(length):
            values.append(draw.choice(steps)(draw.choice(values[-near:]), draw.choice(values[-near:]), w) * 0.01)
        return values

    def program(*arrays):
        if seed % 2:
            return run(*arrays)[-1 - seed % 3 :]
        return static.value_and_grad(lambda *x: sum(v.sum() for v in run(*x)[-1 - seed % 4 :]), (0, 1))(*arrays)

    return program, [shape, shape, (columns, columns) if columns <= 512 else (1, 1)]


def traced(program, shapes):
    """Its graph and sizes."""
    arrays = [np.ones(shape, np.float32) for shape in shapes]
    f = static.function(program, interpret=True)
    f(*arrays)
    return f.newest.graph, f.newest.env(arrays)


def arenas(graph, env):
    """Bytes for temporaries of the program, and of one kernel per node in program order."""
    return [lay_out(compile_graph(graph, fuse=fuse).frame, env).total for fuse in (True, False)]


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


SQUARE = [(SIZE, SIZE)] * 3
TENS = pytest.mark.parametrize("seeds", [range(i, i + 10) for i in range(0, 40, 10)], ids=str)


@TENS
def test_random_programs(seeds):
    both = [arenas(*traced(random_program(seed), SQUARE)) for seed in seeds]
    assert all(ours <= 1.15 * in_order for ours, in_order in both)
    assert sum(ours for ours, _ in both) < 0.9 * sum(in_order for _, in_order in both)


@TENS
def test_random_programs_over_arrays_that_are_long_or_wide(seeds):
    """A kernel needs all of its operands and results at one time, so a fused program may take more."""
    both = [arenas(*traced(*oblong_program(seed))) for seed in seeds]
    assert all(ours <= max(2.1 * in_order, 1 << 16) for ours, in_order in both)
    assert sum(ours / max(in_order, 1 << 16) for ours, in_order in both) < 1.2 * len(both)


@TENS
def test_temporaries_and_results_take_no_more_than_the_eager_engine_does_at_its_peak(seeds):
    arrays = [np.ones((2 * SIZE, 2 * SIZE), np.float32) for _ in range(3)]
    for seed in seeds:
        graph, env = traced(random_program(seed), [x.shape for x in arrays])
        program, eager = compile_graph(graph), random_program(seed, dynamic)
        results = sum(int(np.prod(resolve(shape, env))) * b.dtype.itemsize for b, shape in program.lowered.work.outputs)
        tensors = [dynamic.tensor(x) for x in arrays]
        eager(*tensors)  # what is made once
        tracemalloc.start()
        kept = eager(*tensors)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        del kept
        assert lay_out(program.frame, env).total + results <= peak
