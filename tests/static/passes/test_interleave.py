"""Gradients of every k-th element, which lie between each other, are written once."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic
import static as tw
from tests.bits import assert_same_bits
from tests.static.compare import assert_compiles, program_of

RNG = np.random.default_rng(0)


def sin(x):
    return x.sin()


def exp(x):
    return x.exp()


def floats(*shape, dtype=np.float32):
    found = RNG.normal(size=shape).astype(dtype)
    found[found < -1] = -0.0
    return found


STACKED = {
    "pairs": lambda x: (x[:, 0::2] - x[:, 1::2]) * (x[:, 0::2] + 2),
    "rows of three": lambda x: x[0::3] * sin(x[1::3]) + exp(x[2::3]),
    "a chequerboard": lambda x: x[0::2, 0::2] * x[1::2, 0::2] + sin(x[0::2, 1::2]) * x[1::2, 1::2],
    "added to others": lambda x: x[:, 0::2] * x[:, 1::2] + (x * x).sum(),
    "read twice": lambda x: (x[:, 0::2] * x[:, 1::2] + sin(x[:, 0::2])) * x[:, 1::2],
    "a wavelet": lambda x: (lambda y: y[:, 0::2] * y[:, 1::2])(x[:, 0::2] + x[:, 1::2]),
    "numbers that are -0.0": lambda x: x[:, 0::2] * -0.0 - x[:, 1::2] * 0.0,
}
AMONG_ZEROS = {
    "one of two": lambda x: x[:, 1::2] * x[:, 1::2],
    "not all": lambda x: x[:, 0:-2:2] * x[:, 1:-2:2],
    "around another": lambda x: sin(x[:, 0::2]) + (x * x)[:, 1:].sum() + x[:, 1::2] * 2,
    "overlapping": lambda x: x[0::2] * x[1::2] + x[0::2, :1],
}


def gradient(f):
    return tw.grad(lambda x: f(x).sum())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", [*STACKED, *AMONG_ZEROS])
def test_bits_are_those_of_sums_among_zeros(name, dtype):
    f = {**STACKED, **AMONG_ZEROS}[name]
    assert_compiles(gradient(f), (floats(12, 8, dtype=dtype),), (floats(60, 100, dtype=dtype),))
    x = floats(12, 8, dtype=dtype)
    eager = dynamic.tensor(x, requires_grad=True)
    f(eager).sum().backward()
    assert_same_bits(np.asarray(tw.function(gradient(f))(x)), eager.grad.numpy(), name)


@pytest.mark.parametrize("name", STACKED)
def test_no_zeros_are_filled_in(name):
    compiled = tw.function(gradient(STACKED[name]))
    compiled(floats(12, 16))
    assert not any(n.op is not None and n.op.parts == "pad" for n in program_of(compiled).graph.nodes)


@pytest.mark.parametrize("name", AMONG_ZEROS)
def test_parts_that_leave_elements_out_stay_among_zeros(name):
    compiled = tw.function(gradient(AMONG_ZEROS[name]))
    compiled(floats(12, 16))
    assert any(n.op is not None and n.op.parts == "pad" for n in program_of(compiled).graph.nodes)


def test_gradients_of_gradients():
    def curvature(x):
        return gradient(lambda y: gradient(STACKED["a chequerboard"])(y) ** 2)(x)

    assert_compiles(curvature, (floats(4, 6),), (floats(8, 10),))


def test_against_finite_differences():
    x, h = RNG.normal(size=(6, 4)), 1e-6
    for f in STACKED.values():
        found = np.asarray(tw.function(gradient(f))(x))
        for place in np.ndindex(x.shape):
            step = np.zeros_like(x)
            step[place] = h
            difference = float(f(tw.tensor(x + step)).sum() - f(tw.tensor(x - step)).sum()) / (2 * h)
            assert abs(difference - found[place]) < 1e-6
