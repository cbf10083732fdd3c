"""Arrays that come to lie between each other, as coordinates of points do: loops write them by vectors."""

from __future__ import annotations

import numpy as np
import pytest

import static as tw
from tests.bits import assert_all_same_bits
from tests.static.compare import assert_compiles, program_of

RNG = np.random.default_rng(0)


def given(dtype, *shape, count):
    x = (RNG.normal(size=(count, *shape)) * 100).astype(dtype)
    return tuple(x)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int8, np.bool_])
@pytest.mark.parametrize("count", [2, 3, 4, 7, 8, 9])
def test_arrays_are_stacked_as_numpy_does(count, dtype):
    """Whole vectors, what is left of them, and nothing; a NaN keeps its bits."""
    f = tw.function(lambda *x: tw.stack(x, -1))
    for shape in ((1000,), (17,), (1,), (0,), (5, 33), (0, 4), (3, 0), (300, 1)):
        x = given(dtype, *shape, count=count)
        assert_all_same_bits([f(*x)], [np.stack(x, -1)], f"{count} of {shape}")
    assert_compiles(
        lambda *x: tw.stack(x, -1), *(given(dtype, *shape, count=count) for shape in ((400,), (9, 33), (0,)))
    )


def test_slices_turned_arrays_and_what_is_computed_between_them():
    def program(u, v):
        return tw.stack([u[:-1, 1:], u.T[1:, :-1], v, u[1:, 1:].exp()], 2), tw.stack([v.flip(0), v[::1], v], -1)

    inputs = [(given(np.float32, n, n, count=1)[0], given(np.float32, n - 1, n - 1, count=1)[0]) for n in (40, 2, 17)]
    assert_compiles(program, *inputs)
    assert_compiles(tw.grad(lambda u, v: sum((y * y).sum() for y in program(u, v)), (0, 1)), *inputs)
    by_numba = tw.function(program, compiler="numba")
    for u, v in inputs:
        assert_all_same_bits(by_numba(u, v), tw.function(program)(u, v), "numba")


def test_points_are_written_by_loops_and_one_that_reads_an_array_once():
    f = tw.function(lambda x, y: (tw.stack([x, y, y], -1), tw.stack([x, y * 2, x], -1)))
    f(*given(np.float32, 1000, count=2))
    assert {step.name[:2] for step in program_of(f).steps} == {"k_"}
    assert len(program_of(f).steps) == 2


def test_a_stack_in_an_array_that_is_put_together():
    def program(x, y):
        return tw.cat([tw.stack([x, y], 1), tw.stack([y, x, x], 1)], 1), tw.cat([tw.stack([x, y], 1), x[:, None]], 1)

    f = assert_compiles(program, given(np.float32, 500, count=2), given(np.float32, 3, count=2))
    x, y = given(np.float32, 20, count=2)
    assert_all_same_bits(f(x, y), (np.stack([x, y, y, x, x], 1), np.stack([x, y, x], 1)), "numpy")
