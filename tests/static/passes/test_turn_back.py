"""Elementwise functions between two permutations that take each other back read and write no other order."""

import numpy as np
import pytest

import dynamic
import static
from tests.bits import assert_all_same_bits

TURNED = {
    "a chain": lambda x, w: ((x.permute(2, 0, 1) * 3).tanh() + 0.5).permute(1, 2, 0),
    "read twice": lambda x, w: (lambda y: y + y)(x.transpose(1, 2).sin()).transpose(1, 2),
    "of two": lambda x, w: (x.permute(2, 0, 1) * (x + 1).permute(2, 0, 1)).permute(1, 2, 0),
    "of a number": lambda x, w: (x.transpose(0, 1) * w.sum().expand(x.shape[1], x.shape[0], 6)).transpose(0, 1),
    "of columns": lambda x, w: (x.transpose(1, 2) * w.sum((1, 2))).transpose(1, 2),
    "an outer product": lambda x, w: x[0] + (w.sum((0, 1)).reshape(-1, 1) * w.sum((1, 2)) - w.sum()).T,
    "of a matrix": lambda x, w: (x[0].T / w.sum().reshape(1, 1)).T,
}
OTHERS = {
    "another order": lambda x, w: (x.permute(2, 0, 1) * 3).permute(0, 2, 1),
    "returned too": lambda x, w: (lambda y: (y, y.permute(1, 2, 0)))(x.permute(2, 0, 1) * 3),
    "read by a sum": lambda x, w: (lambda y: (y.sum(0), y.permute(1, 2, 0)))(x.permute(2, 0, 1) * 3),
    "of a line and an array": lambda x, w: (w.sum((1, 2)).reshape(-1, 1) * x[0]).T,
    "of an array in its order": lambda x, w: (x.transpose(0, 1) * w).transpose(0, 1),
}


@pytest.mark.parametrize("name", [*TURNED, *OTHERS])
def test_bits_are_those_of_the_other_engine(name):
    program = {**TURNED, **OTHERS}[name]
    compiled = static.function(program)
    for shape in ((4, 5, 6), (6, 6, 6), (1, 3, 6), (2, 0, 6)):
        rng = np.random.default_rng(sum(shape))
        x = rng.standard_normal(shape).astype(np.float32)
        w = rng.standard_normal((shape[1], shape[0], shape[2])).astype(np.float32)
        found, expected = compiled(x, w), dynamic.function(program)(x, w)
        pairs = [list(y) if isinstance(y, tuple) else [y] for y in (found, expected)]
        assert_all_same_bits(*pairs, f"{name} {shape}")
        if shape == (4, 5, 6):
            turns = [node.name for node in compiled.newest.graph.nodes if node.name == "permute"]
            assert bool(turns) == (name in OTHERS), turns


def test_the_gradient_of_an_einsum_copies_nothing_back():
    def loss(a, b, c):
        return (static.einsum("ui,ijk,vj->uvk", a, b, c) ** 2).mean()

    rng = np.random.default_rng(0)
    a, b, c = (rng.standard_normal(shape).astype(np.float32) for shape in ((30, 4), (4, 4, 3), (20, 4)))
    compiled = static.function(static.grad(loss, 1))
    found = compiled(a, b, c)
    wide = [x.astype(np.float64) for x in (a, b, c)]
    surface = np.einsum("ui,ijk,vj->uvk", *wide)
    exact = np.einsum("ui,uvk,vj->ijk", wide[0], surface * 2 / surface.size, wide[2])
    np.testing.assert_allclose(found, exact, rtol=1e-4, atol=1e-6)
    names = [node.name for node in compiled.newest.graph.nodes]
    assert names.count("permute") == 3  # one of the first product, and two of the last gradient
