"""`python -m benchmarks.loops`: programs that mean something, in both engines, checked before they are timed."""

from __future__ import annotations

import numpy as np
import pytest

import static
from benchmarks import loops


def operands(shapes, extent):
    rng = np.random.default_rng(1)
    return [rng.standard_normal([min(n, extent) for n in shape]).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize("name", loops.PROGRAMS)
def test_bits_are_compared_before_times(name):
    program, shapes = loops.PROGRAMS[name]
    given = operands(shapes, 20)
    loops.calls(program, given)["static"]()
    with pytest.raises(AssertionError):
        loops.calls(lambda tw, *x: program(tw, *x) * (2.0 if tw is static else 1.0), given)


def test_a_step_on_a_torus_keeps_the_heat():
    """Heat that leaves a place arrives at its neighbours: the mean stays, and so does the gradient of it."""
    (x,) = operands([(12, 9)], 20)

    def heat(x):
        laplace = static.roll(x, 1, 0) + static.roll(x, -1, 0) + static.roll(x, 1, 1) + static.roll(x, -1, 1) - 4 * x
        return (x + 0.1 * laplace).sum()

    value, gradient = static.function(static.value_and_grad(heat))(x)
    np.testing.assert_allclose(float(value), x.astype(np.float64).sum(), atol=1e-4)
    np.testing.assert_allclose(np.asarray(gradient), np.ones_like(x), rtol=1e-6)
