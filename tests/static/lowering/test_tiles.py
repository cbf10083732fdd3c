"""Operands that lie across the rows of a loop are turned tile by tile: same bits, and no line is read twice."""

from __future__ import annotations

import random

import numpy as np
import pytest

import common.ops.functional as F
import static as tw
from tests.bits import assert_all_same_bits
from tests.helpers.proofs import first
from tests.parity.engines import Derivatives
from tests.static.compare import assert_compiles, program_of

RNG = np.random.default_rng(0)


def floats(*shape, dtype=np.float32):
    return RNG.normal(size=shape).astype(dtype)


PROGRAMS = {
    "matrix": lambda x, y: (F.tanh(x.T) * y).sum(),
    "added": lambda x, y: x.T + y,
    "softmax": lambda x, y: F.softmax(x.T, 1) * y,
    "both": lambda x, y: (x.T * y).T * x - y.T,
    "bool": lambda x, y: F.where(x.T > 0, y, x.T * 2),
    "sum of rows": lambda x, y: (x.T * y).sum(1).exp().sum(),
    "sum of columns": lambda x, y: (x.T * y).sum(0).exp().sum(),
}
SHAPES = [(70, 90), (64, 64), (17, 300), (300, 17), (5, 3), (1, 5000), (0, 7)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_fused_unfused_and_interpreted_runs_have_equal_bits_at_all_sizes(name):
    program = PROGRAMS[name]

    def whole(x, y):
        y, pullback = tw.vjp(program, x, y)
        return y, *pullback(y)

    assert_compiles(whole, *[(floats(m, n), floats(n, m)) for m, n in SHAPES])


def test_a_transposed_operand_is_turned_and_numpy_agrees():
    compiled = assert_compiles(lambda x, y: x.T * 2 + y, (floats(100, 70), floats(70, 100)))
    assert "for m0 in range(" in compiled.source
    x, y = floats(50, 130), floats(130, 50)
    assert_all_same_bits([compiled(x, y)], [x.T * np.float32(2) + y], "numpy")
    assert len(program_of(compiled).steps) == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, bool])
def test_a_transposed_operand_that_is_read_backwards_is_turned_and_numpy_agrees(dtype):
    compiled = tw.function(lambda x, y: (F.flip(x.T, (0,)) ^ y, F.flip(x, (0, 1)).T) if dtype is bool else
                           (F.flip(x.T, (0,)) * 2 + y, F.flip(x, (0, 1)).T - y))  # fmt: skip
    for m, n in ((100, 70), (70, 100), (17, 300), (300, 17), (5000, 18)):
        x, y = (floats(*shape) * 9 for shape in ((m, n), (n, m)))
        x, y = (x > 0, y > 0) if dtype is bool else (x.astype(dtype), y.astype(dtype))
        back, both = x.T[::-1], x[::-1, ::-1].T
        expected = [back ^ y, both] if dtype is bool else [back * dtype(2) + y, both - y]
        assert_all_same_bits(list(compiled(x, y)), expected, "numpy")
    assert "m1 - 1 - r0" in compiled.source


def test_an_operand_is_turned_once_and_a_reduction_takes_its_rows_where_they_lie():
    compiled = assert_compiles(lambda x: F.softmax(x.T, 1), (floats(100, 70),))
    assert compiled.source.count("turn_rows(") == 1
    assert "row_max(b0, q0, " in compiled.source


def test_small_operands_are_read_as_they_lie():
    compiled = assert_compiles(lambda x, y: x.T * 2 + y, (floats(20, 30), floats(30, 20)))
    assert "m0" not in compiled.source


def permuted(seed):
    """A random program over permuted arrays of three and four dimensions."""

    def program(x, y):
        choose = random.Random(seed)
        values = [x, y]
        for _ in range(choose.randint(2, 5)):
            a, b = choose.choice(values), choose.choice(values)
            order = list(range(x.ndim))
            choose.shuffle(order)
            a = F.permute(a, order)
            if choose.random() < 0.3:
                a = F.flip(a, (choose.randrange(a.ndim),))
            if tuple(a.shape) != tuple(b.shape):
                b = a if choose.random() < 0.5 else a.sum(choose.randrange(a.ndim), True)
            values.append(choose.choice([F.add, F.mul, lambda a, b: F.tanh(a) - b])(a, b))
        return tuple(values[-2:])

    return program


@pytest.mark.parametrize("part", first(2, range(12)))
def test_both_engines_agree_on_random_permutations(part):
    for seed in (2 * part, 2 * part + 1):
        shape = [(20, 24, 28), (9, 11, 8, 10)][seed % 2]
        both = Derivatives(permuted(seed), order=1)
        rng = np.random.default_rng(seed)
        both.check([rng.normal(size=shape).astype(["f4", "f8"][part % 2]) for _ in range(2)], rng, f"{seed}")


@pytest.mark.parametrize("shape", [(700, 300), (40, 30, 50)])
def test_threads_and_the_other_compiler_give_the_same_bits(shape):
    def program(x, y):
        order = tuple(range(len(shape)))[::-1]
        return F.tanh(F.permute(x, order)) * y, F.softmax(F.permute(x, order) * y, -1)

    x, y = floats(*shape), floats(*shape[::-1])
    compiled = tw.function(program)
    expected = compiled(x, y)
    assert_all_same_bits(tw.function(program, compiler="numba")(x, y), expected, "numba")
    tw.set_num_threads(2)
    try:
        assert_all_same_bits(compiled(x, y), expected, "two threads")
    finally:
        tw.set_num_threads(1)
