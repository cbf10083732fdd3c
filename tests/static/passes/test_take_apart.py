"""Elements of a short dimension are computed apart where nothing else reads them together."""

from __future__ import annotations

import numpy as np
import pytest

import static as tw
from tests.static.compare import assert_compiles, program_of

RNG = np.random.default_rng(0)


def floats(*shape):
    return RNG.normal(size=shape).astype(np.float32)


APART = {
    "areas": lambda a, b: (lambda d: d[..., 0] * d[..., 1])(tw.clamp(a[:, None] - b, min=0)),
    "one element": lambda a, b: tw.exp(a[:, None] + b)[:, :, 1],
    "rows": lambda a, b: (lambda d: d[0] - d[1])(tw.tanh(a.T) * 2 + a[0, 0]),
    "numbers": lambda a, b: (lambda d: d[:, 0] + d[:, 1])(tw.where(a > 0, a.to(tw.float64) * 2, 1.5)),
    "a column beside": lambda a, b: (lambda d: d[:, 1] / d[:, 0])(tw.maximum(a, a[:, :1])),
    "a vector for all": lambda a, b: (lambda d: d[..., 1] - d[..., 0])(a[:, None] * b * b[0]),
}
TOGETHER = {
    "returned": lambda a, b: (lambda d: (d, d[:, 0] * d[:, 1]))(tw.exp(a)),
    "summed too": lambda a, b: (lambda d: d[:, 0] * d.sum(1))(tw.exp(a)),
    "read twice": lambda a, b: (lambda d: tw.sin(d[:, 0]) + tw.cumsum(d[:, :1], 0)[:, 0])(tw.exp(a)),
    "rows of a slice": lambda a, b: (lambda d: d[1:, 0] * d[:-1, 1])(tw.exp(a)),
    "with a new axis": lambda a, b: (lambda d: d[:, None, 0] * d[:, 1])(tw.exp(a)),
    "steps": lambda a, b: (lambda d: d[::2, 0] * d[1::2, 1])(tw.exp(a)),
}


@pytest.mark.parametrize("name", [*APART, *TOGETHER])
def test_bits_are_those_of_the_whole(name):
    arrays = floats(20, 2), floats(30, 2)
    assert_compiles({**APART, **TOGETHER}[name], arrays, (floats(6, 2), floats(1, 2)))


@pytest.mark.parametrize("name", APART)
def test_what_is_computed_apart_is_one_kernel(name):
    compiled = tw.function(APART[name])
    compiled(floats(20, 2), floats(30, 2))
    assert [step.name[:2] for step in program_of(compiled).steps] == ["k_"]
    nodes = [node for node in program_of(compiled).graph.nodes if node.op is not None]
    computed = {value.key for node in nodes if node.op.kind == "elementwise" for value in node.outputs}
    assert not any(value.key in computed for node in nodes if node.op.parts == "part" for value in node.values)


@pytest.mark.parametrize("name", TOGETHER)
def test_what_is_read_together_stays_so(name):
    compiled = tw.function(TOGETHER[name])
    compiled(floats(20, 2), floats(30, 2))
    assert [n.name for n in program_of(compiled).graph.nodes].count("exp") == 1


def test_gradients():
    def loss(a, b):
        return APART["areas"](a, b).sum()

    assert_compiles(lambda a, b: tw.grad(loss, argnums=(0, 1))(a, b), (floats(20, 2), floats(30, 2)))
