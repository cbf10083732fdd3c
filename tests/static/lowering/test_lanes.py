"""Sums over rows that a loop computes: in the lanes of S for every length, nothing stored on the way."""

import numpy as np
import pytest

import dynamic
import static
from tests.bits import assert_all_same_bits

SIZES = (0, 1, 15, 16, 17, 63, 1023, 1024, 1025, 2048, 3000)


def program(tw):
    def call(x, w, g):
        def rows(x, w):
            return tw.layer_norm(x * w, (x.shape[1],)) + tw.softmax(x, 1) * tw.sum(x * x, 1, True)

        y, pullback = tw.vjp(rows, x, w)
        return (y, *pullback(g))

    return tw.function(call)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_length_has_the_bits_of_the_sum(dtype):
    """One compiled program for all lengths but 1, whose rows are one block, or several, or end within lanes."""
    compiled, eager = program(static), program(dynamic)
    for columns in SIZES:
        rng = np.random.default_rng(columns)
        x, g = (rng.standard_normal((5, columns)).astype(dtype) for _ in range(2))
        x[0] = -0.0
        w = rng.standard_normal(columns).astype(dtype)
        assert_all_same_bits(compiled(x, w, g), eager(x, w, g), f"{columns} columns")


def test_what_is_summed_is_not_stored():
    @static.function
    def f(x, m):
        return static.sum((x - m) * x, 1)

    f(np.ones((8, 100), np.float32), np.ones((8, 1), np.float32))
    assert "fold_lanes(" in f.source
    (kernel,) = f.explain().kernels
    assert sum(piece.nbytes for piece in f.explain().arena) < 8 * 100 * 4
    assert kernel.writes == 8 * 4


def test_sums_of_a_stage_are_one_pass():
    def sums(tw):
        return tw.function(lambda x, y: (tw.sum(x * y, 1), tw.sum(x, 1), tw.sum(y, 1)))

    f = sums(static)
    operands = [np.random.default_rng(0).standard_normal((3, 50)).astype(np.float32) for _ in range(2)]
    f(*operands)
    assert f.source.count("for i in range(") == 1
    assert_all_same_bits(f(*operands), sums(dynamic)(*operands), "sums")
