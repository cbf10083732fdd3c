"""Large arrays of one number come from a builtin once they have come often, with the number's own bits."""

import numpy as np
import pytest

import dynamic as tw

VALUES = [0, 0.0, -0.0, 1, 1.0, True, False, 2.5, float("nan"), float("inf"), 3]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8", "bool"])
def test_numbers_that_are_equal_keep_their_bits(dtype):
    for _ in range(5):
        for value in VALUES:
            if dtype[0] != "f" and (value != value or value == float("inf")):
                continue
            expected = np.full((70, 81), value, dtype)
            found = tw.full((70, 81), value, dtype=getattr(tw, dtype)).numpy()
            assert found.dtype == expected.dtype
            assert found.tobytes() == expected.tobytes(), value


def test_each_has_memory_of_its_own():
    made = [tw.zeros(5000) for _ in range(6)] + [tw.ones(5000) for _ in range(6)]
    for i, x in enumerate(made):
        x.add_(i)
    assert [x[-1].item() for x in made] == [0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12]


@pytest.mark.parametrize("dtype", ["float32", "bool"])
def test_zeros_that_nobody_has_touched_are_zeros_of_their_own(dtype):
    x = tw.ones(4500 if dtype == "float32" else 18000, 1000).to(getattr(tw, dtype))
    for _ in range(14):
        y, z = tw.zeros_like(x), tw.empty_like(x)
        assert y.dtype == x.dtype
        assert y.shape == x.shape
        assert not y.any()
        y[-1] = 1
        assert not z.any()
        assert y.sum() == 1000
    w = tw.ones(4500, 1000, requires_grad=True)
    assert not tw.zeros_like(w).requires_grad
    (g,) = tw.autograd.grad((w * 0).sum() + tw.zeros_like(w).sum(), [w])
    assert not g.any()
