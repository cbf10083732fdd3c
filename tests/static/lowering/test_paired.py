"""One element of each row, ``x[arange(n), y]``, is read and made by the loop over the row."""

from __future__ import annotations

import numpy as np
import pytest

import static as tw
from common.core.errors import IndexRangeError
from tests.static.compare import assert_compiles, program_of

RNG = np.random.default_rng(0)


def floats(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def smoothed(x, y):
    scores = tw.log_softmax(x, 1)
    return -(0.9 * scores[tw.arange(x.shape[0]), y] + 0.1 * scores.mean(1)).mean()


def kernels(compiled):
    """The names of the kernels that every call runs, but for those that check indices before."""
    return [kernel.name for kernel in compiled.explain().kernels if not kernel.kept and kernel.name != "check"]


@pytest.mark.parametrize("dtype", [np.int64, np.int32])
@pytest.mark.parametrize("columns", [2, 5, 20, 1500])
def test_a_loss_and_its_gradient_are_one_kernel_each(columns, dtype):
    arrays = [(floats(n, columns), RNG.integers(-columns, columns, n).astype(dtype)) for n in (7, 30)]
    for program, most in ((smoothed, 2), (tw.grad(smoothed), 1)):
        compiled = assert_compiles(program, *arrays)
        assert len(kernels(compiled)) <= most
        assert all(name.startswith("k_") for name in kernels(compiled))


def test_zeros_are_positive_where_they_are_added():
    """The op adds to zeros, so -0.0 becomes +0.0."""

    def program(x, y, g):
        return tw.vjp(lambda x: (x * 2)[tw.arange(x.shape[0]), y], x)[1](g)[0]

    g = np.array([-0.0, 0.0, -1.0, np.nan, -np.inf], np.float32)
    assert_compiles(program, (floats(5, 6), np.array([0, -1, 2, 3, -6]), g))


def test_reads_that_are_no_pairs():
    """Other orders, starts and shapes, repeated elements, and ones that are broadcast."""

    def program(x, y):
        n = x.shape[0]
        return (
            (x + 1)[tw.arange(n - 1, -1, -1), y], (x + 1)[tw.arange(1, n), y[1:]], (x + 1)[y, tw.arange(n)],
            (x + 1)[tw.arange(n), y[:1]], (x + 1)[tw.arange(n)[:, None], y[None]], (x + 1)[tw.arange(n), y],
            (x + 1)[None, :, :3][0][tw.arange(n), y % 3], (x.mT + 1)[tw.arange(n), y],
        )  # fmt: skip

    assert_compiles(program, (floats(6, 6), RNG.integers(-6, 6, 6)))
    assert_compiles(
        lambda x, y: (x * 2)[tw.arange(x.shape[0]), y], (floats(1, 6), np.array([2])), (floats(4, 1), y0(4))
    )


def y0(n):
    return np.zeros(n, np.int64)


@pytest.mark.parametrize("wrong", [5, -6, 2**40])
def test_wrong_indices_are_told_as_they_are_given(wrong):
    message = f"index {wrong}" if abs(wrong) < 2**24 else "an index beyond 16777216"
    y = np.array([0, -5, wrong])
    for program in (smoothed, tw.grad(smoothed)):
        with pytest.raises(IndexRangeError, match=rf"{message} is out of bounds for dimension 1 with size 5"):
            tw.function(program)(floats(3, 5), y)
    assert program_of(assert_compiles(smoothed, (floats(3, 5), y % 5)))
