"""Sizes of arguments as numbers of a program: whatever is made with them, a trace gives what the same lines give."""

import math

import numpy as np
import pytest

import static as tw
from static import nn

F = nn.functional
#: Lines of x, and of its sizes n and m.
LINES = {
    "full": lambda x, n, m: tw.full((n,), n),
    "tensor": lambda x, n, m: tw.tensor(n),
    "list": lambda x, n, m: tw.tensor([n, m]),
    "list of floats": lambda x, n, m: tw.tensor([n, 0.5]),
    "nested list": lambda x, n, m: tw.tensor([[n], [True]]),
    "shape": lambda x, n, m: tw.tensor(x.shape),
    "new tensor": lambda x, n, m: x.new_tensor([n, m]),
    "new": lambda x, n, m: x.new(m).fill_(1),
    "typed": lambda x, n, m: tw.LongTensor(n) + m,
    "typed by a shape": lambda x, n, m: tw.FloatTensor(x.shape),
    "arange": lambda x, n, m: tw.arange(1, n + 1, 2),
    "arange of floats": lambda x, n, m: tw.arange(0.0, n),
    "linspace": lambda x, n, m: tw.linspace(0, n, m),
    "eye": lambda x, n, m: tw.eye(n, m),
    "quotient": lambda x, n, m: x[: n // 2] / m,
    "root": lambda x, n, m: x / math.sqrt(m) * n**-0.5,
    "power": lambda x, n, m: x**n + 2 ** (m % 3),
    "bits": lambda x, n, m: x * (n & 1 | m ^ 5) + (1 & n) + (4 | m) + (3 ^ n) + (n & m),
    "shifts": lambda x, n, m: x * (n << 1) + (m >> 1) + (1 << n) + (64 >> n) + ~m,
    "rounding": lambda x, n, m: x * round(n / 2) + math.ceil(m / 2) + divmod(n, 2)[1],
    "extremes": lambda x, n, m: x * max(n, m) + min(n, 2) + abs(n - m),
    "bound": lambda x, n, m: (x * 9).clamp(1, n),
    "choice": lambda x, n, m: tw.where(x > 0.5, n, x),
    "comparison": lambda x, n, m: tw.arange(5) == n,
    "index": lambda x, n, m: x[[0, n - 1]][:, -m:],
    "step": lambda x, n, m: x.flatten()[::m],
    "repeated": lambda x, n, m: tw.cat([x] * n).repeat(1, m),
    "rolled": lambda x, n, m: x.roll(m // 2, 1),
    "padded": lambda x, n, m: F.pad(x, (1, m), value=n),
    "resized": lambda x, n, m: F.interpolate(x[None], size=m + 1, mode="linear"),
    "groups": lambda x, n, m: F.conv1d(x[None], tw.ones(n, 1, 1), groups=n),
    "quantile": lambda x, n, m: x.quantile(1 / n),
}


@pytest.mark.parametrize("name", LINES)
def test_lines_that_compute_with_sizes(name):
    f = LINES[name]
    traced = tw.function(lambda x: f(x, x.shape[0], x.size(1)))
    for sizes in ((3, 4), (5, 4), (2, 7)):
        x = tw.tensor(np.random.default_rng(0).random(sizes), dtype=tw.float32)
        found, expected = traced(x), f(x, *sizes)
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        assert found.numpy().tobytes() == expected.numpy().tobytes()
