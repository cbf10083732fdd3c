"""Elements of what elementwise functions make are picked before these are computed."""

import numpy as np
import pytest

import static as tw
from common.core.errors import IndexRangeError
from tests.static.compare import assert_compiles

RNG = np.random.default_rng(4)


def classes(*shape, count=5):
    return RNG.integers(0, count, shape)


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


LOSSES = {
    "cross entropy": lambda x, t, b: tw.nn.functional.cross_entropy(x, t),
    "nll loss": lambda x, t, b: tw.nn.functional.nll_loss(x * 2 - b[:, None, :, :1], t),
    "of one row for all": lambda x, t, b: tw.nn.functional.nll_loss(x - x.amax((0, 2, 3), True), t),
    "of another dtype": lambda x, t, b: tw.nn.functional.nll_loss(x.to(tw.float64) - 1, t),
    "with its gradient": lambda x, t, b: tw.value_and_grad(lambda x: tw.nn.functional.cross_entropy(x, t))(x),
    "of classes that broadcast": lambda x, t, b: tw.nn.functional.nll_loss(x[:1] + x, t),
    "two losses": lambda x, t, b: (lambda y: tw.nn.functional.nll_loss(y, t) + tw.nn.functional.nll_loss(y, t * 0))(-x),
}


@pytest.mark.parametrize("name", LOSSES)
def test_bits_stay(name):
    assert_compiles(
        LOSSES[name], *((floats(n, 5, h, 7), classes(n, h, 7), floats(n, h, 7)) for n, h in ((3, 6), (2, 4)))
    )


def made(program, *arrays):
    """The most elements that a kernel writes."""
    compiled = tw.function(program)
    compiled(*arrays)
    return max(kernel.writes for kernel in compiled.explain().kernels) // 4


def test_only_what_is_picked_is_computed():
    x, t = floats(2, 5, 60, 70), classes(2, 60, 70)
    assert made(LOSSES["cross entropy"], x, t, floats(2, 60, 70)) <= 3 * t.size
    assert made(lambda x, t: (lambda y: (y, tw.nn.functional.nll_loss(y, t)))(-x), x, t) == x.size


def test_a_wrong_class_is_told_where_it_is_picked():
    compiled = tw.function(LOSSES["cross entropy"])
    compiled(floats(2, 5, 6, 7), classes(2, 6, 7), floats(2, 6, 7))
    with pytest.raises(IndexRangeError, match="index 9 is out of bounds for dimension 3 with size 5"):
        compiled(floats(2, 5, 6, 7), classes(2, 6, 7) * 0 + 9, floats(2, 6, 7))
