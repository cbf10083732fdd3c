"""Distances of pairs without differences in memory: the bits of the ops that say the same, and numpy's values."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic as tw
import static
from tests.bits import assert_all_same_bits

#: Both kernels of few elements, that of many, the ops of few rows; tiles and blocks that are not whole.
SHAPES = [
    ((5, 3), (20, 3)), ((30, 16), (300, 16)), ((70, 17), (1500, 17)), ((9, 32), (16, 32)), ((2, 40, 33), (2, 600, 33)),
    ((64, 1), (16, 1)), ((3, 4), (5, 4)), ((3, 1024), (17, 1024)), ((3, 1025), (17, 1025)), ((0, 4), (20, 4)),
    ((2, 3, 4), (20, 4)),
]  # fmt: skip


def of_ops(tw, a, b):
    return tw.norm(a.unsqueeze(-2) - b.unsqueeze(-3), 2.0, -1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_bits_are_those_of_ops(shapes, dtype):
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(dtype) for shape in shapes)
    if a.size:
        a[..., 1, :] = b[..., 1, :]  # a distance of 0
    g = rng.standard_normal((*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-2])).astype(dtype)

    def program(tw, distances):
        def f(a, b, g):
            loss = lambda a, b: (distances(a, b) * g).sum()  # noqa: E731
            return (distances(a, b), *tw.grad(loss, (0, 1))(a, b))

        return tw.function(f)(a, b, g)

    expected = program(static, lambda a, b: of_ops(static, a, b))
    np.testing.assert_allclose(
        np.asarray(expected[0]), np.sqrt(((a[..., :, None, :] - b[..., None, :, :]).astype(np.float64) ** 2).sum(-1)),
        rtol=1e-5 if dtype == np.float32 else 1e-13,
    )  # fmt: skip
    for engine in (tw, static):
        for _ in range(2):
            found = program(engine, lambda a, b, tw=engine: tw.cdist(a, b))
            assert_all_same_bits(found, expected, f"{shapes}")


@pytest.mark.parametrize(("f", "shapes"), [
    (lambda tw, a, b: tw.cdist(a, b), ((5, 3), (20, 3))), (lambda tw, a, b: tw.cdist(a, b), ((2, 5, 17), (2, 21, 17))),
    (lambda tw, a, b: tw.cdist(a, b), ((4, 3), (2, 5, 3))),
    (lambda tw, a, b: tw.cross(a, b, dim=1), ((40, 3), (40, 3))),
    (lambda tw, a, b: tw.cross(a, b, dim=1), ((1, 3), (40, 3))),
])  # fmt: skip
def test_what_both_engines_record_of_two_arrays_has_the_same_bits(f, shapes):
    """The sizes of two arrays are equal by chance: a trace that took them for different ones took other ops."""
    rng = np.random.default_rng(2)
    arrays = [np.round(rng.standard_normal(shape) * 2).astype(np.float32) + np.float32(-0.0) for shape in shapes]

    def second(tw):
        def program(a, b):
            a, b = (x.detach().requires_grad_() for x in (a, b))
            y = f(tw, a, b)
            first = tw.autograd.grad(y, (a, b), tw.sin(y.detach()), create_graph=True)
            return (y.detach(), *first, *tw.autograd.grad(first, (a, b), [tw.cos(x.detach()) for x in first]))

        return [x.detach() for x in tw.function(program)(*map(tw.tensor, arrays))]

    assert_all_same_bits(second(static), second(tw), f"{shapes}")


def test_operands_of_other_layouts():
    rng = np.random.default_rng(1)
    a, b = tw.tensor(rng.standard_normal((16, 40))).t(), tw.tensor(rng.standard_normal((60, 16))[::2])
    for _ in range(3):
        assert_all_same_bits([tw.cdist(a, b)], [of_ops(tw, a.contiguous(), b.contiguous())], "views")
