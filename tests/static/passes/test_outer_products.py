"""Products of a column and a row are elementwise, and have the bits of the kernel of products."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic
import static as tw
from tests.bits import assert_same_bits
from tests.static.compare import assert_compiles, program_of

RNG = np.random.default_rng(0)
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-38, -1e-38, 3e38]

CASES = {
    "a column and a row": lambda x, y: x[:, None] @ y[None],
    "wide": lambda x, y: x[:, None] @ y.repeat(30)[None],
    "tall": lambda x, y: x.repeat(30)[:, None] @ y[None],
    "one column": lambda x, y: x[:, None] @ y[None, 1:2],
    "transposed": lambda x, y: x[None].mT @ y[:, None].mT,
    "of a batch": lambda x, y: x.reshape(4, -1, 1) @ y.reshape(4, 1, -1) - 1,
    "one row": lambda x, y: x[:1, None] @ y[None],
    "one element": lambda x, y: x[:1, None] @ y[None, :1],
    "a gradient": lambda x, y: (x[:, None] @ y[None] + x[:, None] * y) @ y,
}


def floats(n, dtype):
    x = RNG.normal(size=n).astype(dtype)
    x[: len(SPECIAL)] = SPECIAL
    return x


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CASES)
def test_bits_are_those_of_products(name, dtype):
    f, x, y = CASES[name], floats(40, dtype), floats(20, dtype)[::-1].copy()
    a, b = dynamic.tensor(x, requires_grad=True), dynamic.tensor(y, requires_grad=True)
    made = f(a, b)
    made.sum().backward()
    assert_same_bits(np.asarray(tw.function(f)(x, y)), made.detach().numpy(), name)
    gradient = tw.grad(lambda x, y: f(x, y).sum(), (0, 1))
    for found, wanted in zip(tw.function(gradient)(x, y), (a.grad, b.grad), strict=True):
        assert_same_bits(np.asarray(found), wanted.numpy(), name)
    assert_compiles(f, (x, y), (floats(80, dtype), floats(24, dtype)))


def test_no_kernel_of_products_is_left():
    f = tw.function(tw.grad(lambda a, x: (a @ x).sin().sum()))
    f(RNG.normal(size=(60, 9)).astype(np.float32), RNG.normal(size=9).astype(np.float32))
    names = [node.name for node in program_of(f).graph.nodes]
    assert names.count("mm") == 1, "the product itself"
