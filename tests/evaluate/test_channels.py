"""Operands with one element per channel, and sums over all but the channels: numpy's elements, the defined sum."""

import numpy as np
import pytest

import dynamic as tw
from common.evaluate import kernels as eager_kernels
from common.evaluate import reduction_kernels
from common.kernels.arrays.sums import sum_oracle
from tests.bits import assert_same_bits
from tests.helpers.proofs import each

SHAPES = [
    (4, 3, 5),
    (2, 16, 32, 32),
    (33, 7, 9),
    (3, 5, 1, 2),
    (2, 3, 4, 5, 6),
    (5, 1, 7),
    (1, 4, 6),
    (2100, 2, 3),
    (6, 1, 50),
]
CALLS = {
    "left": lambda x, p: x * p,
    "right": lambda x, p: p - x,
    "both kinds": lambda x, p: (x - p) * p,
    "a row of positions": lambda x, p: x * p - x[:1, :1],
    "a sample and a channel": lambda x, p: x * p + x[..., :1],
    "a number": lambda x, p: (x + p) * 3,
    "a row of each sample": lambda x, p: x[:, :1] - x,
    "a number of each sample": lambda x, p: x * p - x[(slice(None), *[slice(1)] * (x.ndim - 1))],
    "samples against channels": lambda x, p: x[:, :1] * x[:1],
}


def operands(shape, dtype, seed=3):
    rng = np.random.default_rng(seed)
    channels = (shape[1], *(1,) * (len(shape) - 2))
    return [(9 * rng.standard_normal(s)).astype(dtype) for s in (shape, channels)]


def by_channels(x):
    """The elements of each channel in the order of their indices."""
    return np.moveaxis(x, 1, 0).reshape(x.shape[1], -1)


def over_all_but_channels(x):
    return tuple(d for d in range(x.ndim) if d != 1)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@each("shape", SHAPES)
def test_elements(dtype, shape, call):
    x, p = operands(shape, dtype)
    np.testing.assert_array_equal(call(tw.tensor(x), tw.tensor(p)).numpy(), call(x, p))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@each("shape", SHAPES)
def test_sums(dtype, shape):
    x = operands(shape, dtype)[0]
    a, dims = tw.tensor(x), over_all_but_channels(x)
    assert_same_bits(a.sum(dims).numpy(), sum_oracle(by_channels(x)), "sum")
    strided = tw.tensor(np.ascontiguousarray(x.T)).permute(*reversed(range(x.ndim)))
    assert_same_bits(strided.sum(dims).numpy(), sum_oracle(by_channels(x)), "sum of a transposed array")
    if x.dtype.kind == "f":
        mean = sum_oracle(by_channels(x)) / x.dtype.type(x.size // x.shape[1])
        centred = by_channels(x) - mean[:, None]
        least = np.maximum(x.size // x.shape[1] - 1, 0).astype(dtype)
        with np.errstate(all="ignore"):
            assert_same_bits(a.var(dims).numpy(), sum_oracle(centred * centred) / least, "variance")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@each("shape", SHAPES)
def test_gradients_of_channels_are_summed_without_storing_what_is_summed(dtype, shape):
    x, p = operands(shape, dtype)
    g = operands(shape, dtype, seed=4)[0]
    q = tw.tensor(p, requires_grad=True)
    (tw.tensor(x) * q).backward(tw.tensor(g))
    assert_same_bits(q.grad.numpy().ravel(), sum_oracle(by_channels(g * x)), "gradient")


def test_which_operands_are_of_channels():
    shape = (8, 4, 5, 5)
    found = {have: eager_kernels.class_in_blocks(have, shape, 1, 2) for have in [
        shape, (8, 4, 1, 1), (1, 4, 1, 1), (4, 1, 1), (5, 5), (), (8, 1, 1, 1), (4, 5, 5), (8, 1, 5, 5),
        (8, 1, 1, 5)]}  # fmt: skip
    assert list(found.values()) == ["f", "r", "p", "p", "c", "s", "h", "k", "m", None]
    assert eager_kernels.arrange([shape, (4, 1, 1)], shape) == (["f", "p"], (8, 25, 4))
    assert eager_kernels.arrange([shape, (8, 4, 1, 1)], shape) == (["f", "r"], (32, 25))
    assert reduction_kernels.channels(shape, (0, 2, 3)) == (1, 2)
    assert reduction_kernels.channels(shape, (0, 3)) == (1, 3)
    assert [reduction_kernels.channels(shape, dims) for dims in ((0, 1), (2, 3), (1, 3), (0, 1, 2, 3))] == [None] * 4
