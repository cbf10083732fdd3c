"""Chains of hundreds of operations in one kernel: values of elements, of rows and of the kernel, and gradients."""

import numpy as np
import pytest

import dynamic
import static
from tests.bits import assert_all_same_bits


def _elements(x, w, steps):
    """Goertzel's filter, written out: two numbers of state for each row and frequency."""
    c = 2 * w.cos()
    now = before = x[:, :1] * 0 + c * 0
    for k in range(steps):
        now, before = x[:, k % 4 : k % 4 + 1] + c * now - before, now
    return now * now + before * before - c * now * before


def _numbers(x, w, steps):
    s = w[0] * 0
    for _ in range(steps):
        s = s * w[1] + w[2] * 0.1
    return x * s


def _rows(x, w, steps):
    s = x.sum(1, keepdim=True)
    for _ in range(steps):
        s = s * 0.9 + w[1]
    return x * s


@pytest.mark.parametrize(("f", "steps"), [(_elements, 90), (_numbers, 250), (_rows, 250)])
def test_long_chains(f, steps):
    rng = np.random.default_rng(3)
    arrays = rng.standard_normal((5, 4)).astype(np.float32), rng.uniform(0.1, 1, 4).astype(np.float32)

    def loss(x, w):
        return (f(x, w, steps) * 0.01).sin().sum()

    results = []
    for tw, program in ((static, static.function(loss)), (dynamic, loss)):
        x, w = (tw.tensor(a, requires_grad=True) for a in arrays)
        y = program(x, w)
        y.backward()
        results.append([z.detach().numpy() for z in (y, x.grad, w.grad)])
    assert_all_same_bits(*results, f.__name__)
