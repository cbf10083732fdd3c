"""Indices that all iterations of a loop read are checked once, before it; errors are those of the eager engine."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import DivisionByZeroError, IndexRangeError
from static.jit.function import function
from tests.bits import assert_all_same_bits
from tests.static.compare import as_tuple

F32, N = np.float32, 600


def walks(tw, iterations=4):
    def f(x, i, j):
        def step(_, y):
            return tw.tanh(y + tw.zeros_like(y).index_add(0, j, y[i]))

        return tw.fori_loop(0, iterations, step, x)

    return f


def nested(tw):
    def f(x, i, j):
        return tw.fori_loop(0, 3, lambda _, y: walks(tw, 2)(y, i, j) * 0.5, x)

    return f


def scanned(tw):
    def f(x, i, j):
        def step(y, row):
            y = y[i] * 0.5 + row
            return y, y.gather(0, j)

        return tw.scan(step, x, tw.stack([x, x + 1, x - 1]))

    return f


def gradient(tw):
    return tw.grad(lambda x, i, j: (walks(tw)(x, i, j) ** 2).sum())


def divides_before(tw):
    """An op of the body that may fail comes first: so does its error."""

    def f(x, i, j):
        return tw.fori_loop(0, 3, lambda _, y: (7 // (j - N)).sum() * y[i], x)

    return f


def asks_data(tw):
    """Nobody knows whether the body runs."""

    def f(x, i, j):
        return tw.while_loop(lambda y: y.sum() < 10, lambda y: y + abs(y[i]) + 1, x)

    return f


def changing(tw):
    """Indices that each iteration makes anew."""

    def f(x, i, j):
        return tw.fori_loop(0, 3, lambda _, s: (s[0] + s[0][s[1]], (s[1] + 1) % 4), (x, i))[0]

    return f


def inputs():
    rng = np.random.default_rng(0)
    return rng.standard_normal(N).astype(F32), rng.integers(-N, N, N), rng.integers(0, N, N)


def checks(compiled):
    """How many checks a program has before its loops, and in them."""
    program = compiled.newest_plan.whole.lowered
    outer = sum(step.name == "check" for step in program.steps)
    return outer, sum(step.name == "check" for step in program.all_steps()) - outer


@pytest.mark.parametrize(
    ("program", "before", "inside"),
    [(walks, 2, 0), (nested, 2, 0), (scanned, 2, 0), (gradient, 4, 0), (divides_before, 0, 1), (asks_data, 0, 1),
     (changing, 0, 1)],
)  # fmt: skip
def test_where_indices_are_checked(program, before, inside):
    x, i, j = inputs()
    compiled, eager = function(program(static)), program(dynamic)
    assert_all_same_bits(as_tuple(compiled(x, i, j)), as_tuple(eager(x, i, j)), program.__name__)
    assert checks(compiled) == (before, inside)


@pytest.mark.parametrize("program", [walks, nested, scanned, gradient, changing])
@pytest.mark.parametrize("operand", [1, 2])
def test_errors_are_those_of_the_eager_engine(program, operand):
    compiled, eager = function(program(static)), program(dynamic)
    good = inputs()
    compiled(*good)
    wrong = [x.copy() for x in good]
    wrong[operand][3] = 777
    if program is changing and operand == 2:
        return
    messages = []
    for f in (eager, compiled):
        with pytest.raises(IndexRangeError) as caught:
            f(*wrong)
        messages.append(str(caught.value).splitlines()[0])
    assert "777" in messages[0]
    assert messages[0] == messages[1]
    assert_all_same_bits(as_tuple(compiled(*good)), as_tuple(eager(*good)), "after an error")


def test_no_iteration_looks_at_no_index():
    x, i, _ = inputs()
    i[2] = 999

    def f(tw):
        def g(x, rows, i):
            return tw.scan(lambda y, row: (y[i] + row, y.sum()), x, rows)[0]

        return g

    rows = np.ones((3, N), F32)
    compiled = function(f(static))
    with pytest.raises(IndexRangeError):
        compiled(x, rows, i)
    assert checks(compiled) == (1, 0)
    assert_all_same_bits([compiled(x, rows[:0], i)], [f(dynamic)(x, rows[:0], i)], "no rows")
    assert len(compiled.traces) == 1


def test_an_error_that_comes_first_stays_first():
    x, i, j = inputs()
    i[2] = 999
    j[5] = N
    for tw, f in ((dynamic, divides_before(dynamic)), (static, function(divides_before(static)))):
        with pytest.raises(DivisionByZeroError):
            f(tw.tensor(x), tw.tensor(i), tw.tensor(j))


def test_an_act_that_comes_first_stays_first(capsys):
    x, i, _ = inputs()
    i[2] = 999

    def f(x, i):
        def step(_, y):
            static.print(y.sum())
            return y[i]

        return static.fori_loop(0, 3, step, x)

    with pytest.raises(IndexRangeError):
        function(f)(x, i)
    assert capsys.readouterr().out.count("\n") == 1
