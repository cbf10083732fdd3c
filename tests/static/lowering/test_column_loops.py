"""A loop whose body computes each element from those at its place is one kernel, of any number of columns."""

import numpy as np
import pytest

import dynamic
import static
from static.lowering.codegen import column_loops
from tests.bits import assert_same_bits

F32, F64 = np.float32, np.float64


def follow(tw, x, a):
    """An envelope: what is carried, rows, constants and stacks."""

    def step(e, v):
        u = v.abs()
        e = e + tw.where(u > e, a, a * 0.125) * (u - e)
        return e, e * 2

    return tw.scan(step, a * 0, x)


def swapped(tw, x, a):
    """Two arrays change places, a number comes with each row, and one stack is of what is carried."""

    def step(c, row):
        v, number = row
        p, q = c
        return (q * number + v, p - a), (p, (q + 0.5).tanh())

    return tw.scan(step, (a, a * 2), (x, x.sum(1)), reverse=True)


def alone(tw, x, a):
    """Nothing but what is carried, in float32 and int64."""

    def step(c, _):
        y, k = c
        return (y * 0.75 + k, k ^ (k << 3)), None

    return tw.scan(step, (a, (a * 8).to(tw.int64)), None, length=x.shape[0])[0]


def flat(found):
    return [x for part in found for x in (flat(part) if isinstance(part, tuple) else [part])]


def arrays(iterations, columns, dtype):
    rng = np.random.default_rng(columns + iterations)
    return rng.standard_normal((iterations, columns)).astype(dtype), rng.standard_normal(columns).astype(dtype)


def regions(f):
    return [name for step in f.newest.program.steps for name in step.regions]


@pytest.mark.parametrize("run", [follow, swapped, alone])
@pytest.mark.parametrize("options", [{}, {"compiler": "numba"}])
def test_loops_have_the_bits_of_iterations_one_by_one(run, options, monkeypatch):
    monkeypatch.setattr(column_loops, "MOST_ITERATIONS", 5)
    monkeypatch.setattr(column_loops, "FEW_ITERATIONS", 2)
    monkeypatch.setattr(column_loops, "TILE", 40)
    f = static.function(lambda x, a: run(static, x, a), **options)
    for iterations, columns in [(7, 4), (12, 4), (3, 1), (7, 16), (7, 33), (9, 100), (0, 4), (7, 0)]:
        for dtype in (F32, F64):
            given = arrays(iterations, columns, dtype)
            for a, b in zip(flat(f(*given)), flat(run(dynamic, *map(dynamic.tensor, given))), strict=True):
                assert_same_bits(a, b, f"{run.__name__} of {iterations} x {columns}")
    assert regions(f) == ["iterations"]


@pytest.mark.parametrize("run", [follow, swapped])
@pytest.mark.parametrize("columns", [4, 70])
def test_gradients_are_one_kernel_too(run, columns):
    def loss(tw):
        return lambda x, a: sum((y * y).sum() for y in flat(run(tw, x, a)))

    given = arrays(6, columns, F64)
    f = static.function(static.grad(loss(static), (0, 1)))
    eager = dynamic.grad(loss(dynamic), (0, 1))(*given)
    for a, b in zip(f(*given), eager, strict=True):
        assert_same_bits(a, b, run.__name__)
    assert ("body" in regions(f)) == (run is swapped and columns > 8)  # its numbers get sums over columns
    x, a = given
    for k, at in [(0, (2, 1)), (1, (3,))]:
        values = []
        for h in (1e-6, -1e-6):
            moved = [x.copy(), a.copy()]
            moved[k][at] += h
            values.append(float(loss(dynamic)(*map(dynamic.tensor, moved))))
        assert float(f(*given)[k][at]) == pytest.approx((values[0] - values[1]) / 2e-6, rel=1e-4)


@pytest.mark.parametrize("step", [
    lambda c, v: (c + c.flip(0), c), lambda c, v: (c * c.sum(), c), lambda c, v: (c + v, c[0]),
    lambda c, v: (c + v, static.cat((c[1:], c[:1]))),
])  # fmt: skip
def test_what_reads_other_places_is_no_such_loop(step):
    f = static.function(lambda x, a: static.scan(step, a, x))
    x, a = arrays(5, 12, F64)
    for found, wanted in zip(f(x, a), static.scan(step, static.tensor(a), static.tensor(x)), strict=True):
        assert_same_bits(found, wanted, "scan")
    assert "iterations" not in regions(f)
