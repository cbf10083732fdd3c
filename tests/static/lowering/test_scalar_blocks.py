"""Elementary functions of what a loop over numbers does not carry run by vectors, over blocks of iterations."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import static as tw
from common.compiler.compile import meaning
from common.compiler.translate import translate
from tests.static.compare import assert_compiles

RNG = np.random.default_rng(0)
LENGTHS = [1, 255, 256, 257, 700, 4500]


def rows(n, dtype=np.float32):
    return RNG.random(n).astype(dtype)


def hawkes(p, gaps):
    """The log-likelihood of events of which each makes others more likely."""

    def step(a, gap):
        a = tw.exp(-p[2] * gap) * (1 + a)
        return a, tw.log(p[0] + p[1] * a)

    last, logs = tw.scan(step, p[0] * 0, gaps)
    return logs.sum() + last


def loops(compiled):
    """How many loops over a block, and over its iterations, the kernels have."""
    return compiled.source.count("in range(count)"), compiled.source.count("while done < end")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_of_rows_before_and_of_stacks_behind(dtype):
    inputs = [(np.array([0.5, 0.25, 1.5], dtype), rows(n, dtype)) for n in LENGTHS]
    compiled = assert_compiles(hawkes, *inputs)
    assert loops(compiled) == (2, 1)
    compiled = assert_compiles(tw.grad(hawkes), *inputs)
    assert loops(compiled)[1] == 2


def test_backwards_with_rows_of_vectors():
    """The row of an iteration is a vector, of which elements are read; several stacks wait for what is carried."""

    def program(x, c):
        def step(c, row):
            c = c * tw.tanh(row[1]) + row[0]
            return c, (tw.exp(c), tw.sin(row[1]) + tw.cos(c), c > 1, row[0] / c)

        return tw.scan(step, c, x, reverse=True)

    def flat(*arrays):
        last, stacks = program(*arrays)
        return last, *stacks

    compiled = assert_compiles(flat, *((rows(2 * n).reshape(n, 2), np.float32(0.5)) for n in LENGTHS))
    assert loops(compiled) == (2, 1)


def test_what_is_carried_stays_in_the_iteration():
    def program(x, c):
        return tw.scan(lambda c, row: (tw.exp(-c) + row, c), c, x)[1]

    assert loops(assert_compiles(program, (rows(300), np.float32(0.5)))) == (0, 0)


def test_a_loop_that_asks_is_not_divided():
    def program(p):
        return tw.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + tw.exp(p), c[1] + tw.sin(p)), (p, p))[1]

    assert loops(assert_compiles(program, (np.float32(0.5),))) == (0, 0)


def test_too_much_is_not_kept():
    def program(x, c):
        def step(c, row):
            values = [tw.exp(row * k) for k in range(1, 12)]
            for value in values:
                c = c * 0.5 + value
            return c, c

        return tw.scan(step, c, x)[1]

    assert loops(assert_compiles(program, (rows(300), np.float32(0.5)))) == (0, 0)


def test_values_that_several_loops_need():
    """A cheap value of the row in all three, an elementary one in the iteration and behind it, and what came in."""

    def program(x, c):
        def step(c, row):
            half = row * 0.5
            grown = tw.exp(half)
            return c * 0.25 + grown + half, (tw.log(c + grown), tw.log(half + 1) * c, half)

        last, stacks = tw.scan(step, c, x)
        return last, *stacks

    assert loops(assert_compiles(program, *((rows(n), np.float32(0.5)) for n in LENGTHS))) == (2, 1)


def test_what_a_program_iterates_needs_no_pipeline_of_llvm():
    """Its blocks are vectors as they are written; a kernel of the package with such a loop is optimised."""
    compiled = tw.function(hawkes)
    compiled(np.array([0.5, 0.25, 1.5], np.float32), rows(300))
    (kernel,) = [step for step in compiled.newest.program.all_steps() if "while done" in step.source]
    text, complete = translate(kernel.source, "f", partial(meaning, kernel="f"), one_program=True)
    assert complete
    assert "<16 x float>" in text
    text, complete = translate(kernel.source, "f", partial(meaning, kernel="f"))
    assert not complete
    assert "<16 x float>" not in text
