"""The pass that computes again what costs a load: less is kept, every bit stays."""

import sys

import numpy as np
import pytest

import dynamic
import static
from static.passes.rematerialise import rematerialise
from tests.bits import assert_all_same_bits

LAYERS, WIDTH = 14, 64


def residual(tw):
    """Gradients of a residual network, in which x of a layer is the sum of the one before and a tanh."""

    def loss(x, *weights):
        for w in weights:
            x = x + tw.tanh(x @ w)
        return (x * x).sum()

    def call(x, *weights):
        return tw.vjp(loss, x, *weights)[1](np.float32(1.0))

    return tw.function(call)


def operands(rows):
    rng = np.random.default_rng(7)
    return [(0.3 * rng.standard_normal((n, WIDTH))).astype(np.float32) for n in (rows, *[WIDTH] * LAYERS)]


def counted(rows):
    compiled = residual(static)
    compiled(*operands(rows))
    told = compiled.explain()
    before_and_after = next((p.before, p.after) for p in told.passes if p.name == "rematerialise")
    return before_and_after, told.arena_bytes


def test_what_is_computed_again_has_the_same_bits():
    given = operands(2048)
    assert_all_same_bits(residual(static)(*given), residual(dynamic)(*given), "gradients")


def test_less_is_kept():
    (before, after), arena = counted(2048)
    assert after > before
    nbytes = 2048 * WIDTH * 4
    assert arena < (1.5 * LAYERS + 6) * nbytes  # without it two per layer, and what lives for a moment


def test_what_lies_in_a_cache_is_kept():
    (before, after), _ = counted(32)
    assert after == before


@pytest.mark.parametrize("limit", [1, 2, 6])
def test_one_of_so_many_is_kept(monkeypatch, limit):
    monkeypatch.setattr(sys.modules[rematerialise.__module__], "STEPS", limit)  # the package has the function's name
    given = operands(2048)
    (before, after), _ = counted(2048)
    assert after - before == LAYERS - -(-LAYERS // (limit + 1))
    assert_all_same_bits(residual(static)(*given), residual(dynamic)(*given), "gradients")
