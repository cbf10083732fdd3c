"""Kernels that threads share by their units: no bit depends on how many threads there are, nor on the engine."""

import numpy as np
import pytest

import dynamic
import static
from common.evaluate.kernels import compiled
from common.kernels.arrays.shared_parts import in_parts
from tests.bits import assert_all_same_bits

F = {engine: engine.nn.functional for engine in (dynamic, static)}


@pytest.fixture(autouse=True)
def one_thread_afterwards():
    yield
    dynamic.set_num_threads(1)


def test_a_kernel_does_each_part_once():
    text = f"""def counted(bufs, args):
    x = buffer(bufs, 0, float32)
{in_parts(1, "args[0]", "args[0]", "x")}    for i in range(low, high):
        x[i] = x[i] + float32(1)
    return 0
"""
    for threads in (1, 2, 3):
        dynamic.set_num_threads(threads)
        for n in (0, 1, 3, 1000, 1 << 16, 100_001):
            x = np.zeros(n + 1, np.float32)
            assert compiled(text, "counted", False)(x, n, 0) == 0
            assert (x[:n] == 1).all()
            assert x[n] == 0


def pooling(rng):
    """A function of images of one to three dimensions by a number of elements that threads share."""
    n = int(rng.integers(1, 4))
    sizes = [int(rng.integers(4, 14)) for _ in range(n)]
    size = [int(rng.integers(1, 5)) for _ in range(n)]
    stride = [int(rng.integers(1, 5)) for _ in range(n)] if rng.random() < 0.5 else size
    padding = [int(rng.integers(0, k // 2 + 1)) for k in size] if rng.random() < 0.5 else 0
    ceil = bool(rng.random() < 0.5)
    kind = rng.choice(["max", "avg", "lp", "adaptive_max", "adaptive_avg"])
    shape = (7, 70_000 // (7 * int(np.prod(sizes))) + 1, *sizes)
    if kind in ("max", "avg"):
        return shape, lambda f, x: getattr(f, f"{kind}_pool{n}d")(x, size, stride, padding, ceil_mode=ceil)
    if kind == "lp":
        return shape, lambda f, x: getattr(f, f"lp_pool{n}d")(x, 2.0, size, stride, ceil_mode=ceil)
    count = [int(rng.integers(1, m + 1)) for m in sizes]
    return shape, lambda f, x: getattr(f, f"{kind}_pool{n}d")(x, count if n > 1 else count[0])


def with_gradient(engine, pool, x, rng):
    x = engine.tensor(x)
    g = rng.standard_normal(pool(F[engine], x).shape).astype(x.dtype)

    def both(x, g):
        y, pull = engine.vjp(lambda x: pool(F[engine], x), x)
        return y, *pull(g)

    return [np.asarray(y) for y in (engine.function(both) if engine is static else both)(x, engine.tensor(g))]


@pytest.mark.parametrize("seed", range(6))
def test_pooling_has_the_same_bits_for_any_number_of_threads(seed):
    rng = np.random.default_rng(seed)
    shape, pool = pooling(rng)
    x = rng.integers(-3, 4, shape).astype(np.float64 if seed % 3 == 0 else np.float32)  # many are equal
    x[rng.random(shape) < 0.01] = np.nan
    x[rng.random(shape) < 0.1] = -0.0
    expected = with_gradient(dynamic, pool, x, np.random.default_rng(1))
    for threads in (1, 2, 3):
        dynamic.set_num_threads(threads)
        for engine in (dynamic, static):
            found = with_gradient(engine, pool, x, np.random.default_rng(1))
            assert_all_same_bits(found, expected, f"{threads} threads, {engine.__name__}")


def reduction(rng):
    """A function of arrays that sums rows or channels, and shapes with so many elements that threads share."""
    n, c, columns = int(rng.integers(2, 9)), int(rng.integers(2, 40)), int(rng.choice([1, 3, 16, 33]))
    rows = 70_000 // (n * c * columns) + 1
    shape = (n, c, rows, columns) if rng.random() < 0.5 else (rows, c, n, columns)
    kind = rng.choice(["batch_norm", "sum", "mean", "prod", "rows"])
    if kind == "batch_norm":
        return (shape, (c,), (c,)), lambda engine, x, w, b: F[engine].batch_norm(x, None, None, w, b, training=True)
    if kind == "rows":
        return (shape,), lambda engine, x: engine.amax(x, -1) * engine.sum(x, -1) + engine.amin(x, -1)
    dim = (0, 2, 3) if rng.random() < 0.5 else (2, 3)
    if kind == "prod":
        return (shape,), lambda engine, x: engine.prod(x, -1)
    return (shape,), lambda engine, x: getattr(engine, kind)(x, dim)


def of_rows(rng):
    """A function whose rows are computed one after the other, of so many elements that they are not split up."""
    columns = int(rng.choice([30, 257, 1500]))
    shape = (140_000 // columns, columns)
    name = rng.choice(["softmax", "log_softmax", "layer_norm"])
    if name == "layer_norm":
        return (shape, (columns,), (columns,)), lambda engine, x, w, b: F[engine].layer_norm(x, (columns,), w, b)
    return (shape,), lambda engine, x: getattr(engine, name)(x, -1)


@pytest.mark.parametrize(("make", "seed"), [*((reduction, i) for i in range(8)), *((of_rows, i) for i in range(5))])
def test_sums_have_the_same_bits_for_any_number_of_threads(make, seed):
    rng = np.random.default_rng(seed)
    shapes, function = make(rng)
    arrays = [rng.standard_normal(s).astype(np.float64 if seed % 3 == 0 else np.float32) for s in shapes]

    def results(engine):
        def both(*operands):
            y, pull = engine.vjp(lambda *xs: function(engine, *xs), *operands)
            return y, *pull(y)

        return [
            np.asarray(y) for y in (engine.function(both) if engine is static else both)(*map(engine.tensor, arrays))
        ]

    expected = results(dynamic)
    for threads in (1, 2, 3):
        dynamic.set_num_threads(threads)
        for engine in (dynamic, static):
            assert_all_same_bits(results(engine), expected, f"{threads} threads, {engine.__name__}")


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16, np.bool_])
def test_rows_at_indices_are_those_for_any_number_of_threads(dtype):
    rng = np.random.default_rng(0)
    table, index = rng.integers(0, 2, (50, 33)).astype(dtype), rng.integers(0, 50, (41, 101))
    for threads in (1, 2, 3):
        dynamic.set_num_threads(threads)
        found = dynamic.index_select(dynamic.tensor(table), 0, dynamic.tensor(index.ravel()))
        assert_all_same_bits([found], [table[index.ravel()]], f"{threads} threads")
        wrong = index.ravel().copy()
        wrong[4000] = 50
        with pytest.raises(IndexError, match="50"):
            dynamic.index_select(dynamic.tensor(table), 0, dynamic.tensor(wrong))
