"""Loops whose conditions hold in nearly all iterations are written without them there, and give the same bits."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
import pytest

import static
from common.compiler.compile import compile_kernel, meaning
from common.compiler.translate import translate
from tests.compiler.kernels import run_kernel

SOURCE = """def {name}(bufs, args):
    x = buffer(bufs, 0, float32)
    y = buffer(bufs, 1, float32)
    out = buffer(bufs, 2, float32)
    n = args[0]
    a = args[1]
    b = args[2]
    c = args[3]
    d = args[4]
    for i in range(n):
        s = x[i] if i >= a and i < b else float32(0.0)
        t = y[i] if i >= c and i < d else float32(1.0)
        out[i] = plus(times(s, t), s)
    return 0
"""


def reference(x, y, bounds):
    places = np.arange(len(x))
    a, b, c, d = bounds
    s = np.where((places >= a) & (places < b), x, np.float32(0))
    return s * np.where((places >= c) & (places < d), y, np.float32(1)) + s


def test_the_inner_loop_has_no_masks():
    text, complete = translate(SOURCE.format(name="k"), "symbol", partial(meaning, kernel="k"), True, True)
    assert complete
    plain = SOURCE.format(name="k").replace("i >= a and i < b", "i >= a").replace("i >= c and i < d", "i < d")
    fewer, _ = translate(plain, "symbol", partial(meaning, kernel="k"), True, True)
    loads = "load <16 x float>"
    assert text.count(loads) > fewer.count(loads)


@pytest.mark.parametrize("n", [0, 1, 15, 16, 127, 128, 129, 300])
def test_every_order_of_bounds_has_the_same_bits(n):
    rng = np.random.default_rng(n)
    x, y = (rng.normal(size=max(n, 1)).astype("f") for _ in range(2))
    address = compile_kernel(SOURCE.format(name="test_inner"), "test_inner")
    near = sorted({0, 1, 3, n // 2, max(n - 2, 0), n})
    for bounds in product(near, repeat=4):
        out = np.full(max(n, 1), 7, "f")
        assert run_kernel(address, [x, y, out], [n, *bounds]) == 0
        assert out[:n].tobytes() == reference(x, y, bounds).astype("f")[:n].tobytes(), bounds
        assert n or out[0] == 7


@pytest.mark.parametrize("shape", [(4,), (140,), (1000,), (7, 150), (150, 9)])
def test_gradients_of_stencils_are_those_of_single_slices(shape):
    def loss(x):
        rows = x.reshape(-1) if x.ndim == 1 else x
        middle = rows[1:-1]
        return ((rows[2:] - middle * 2 + rows[:-2]) ** 2 * 0.5 + middle * rows[:-2]).sum()

    x = np.random.default_rng(0).normal(size=shape).astype("f")
    expected = np.zeros(shape)
    d = x[2:].astype("d") - 2.0 * x[1:-1] + x[:-2]
    expected[2:] += d
    expected[1:-1] += -2 * d + x[:-2]
    expected[:-2] += d + x[1:-1]
    found = static.function(static.grad(loss))(x)
    assert np.allclose(np.asarray(found), expected, atol=2e-5)
