"""Sobol's sequence: PyTorch's points, how a sequence goes on, scrambled ones, what is refused."""

import copy
import math

import pytest

import dynamic
import static
from common.core.errors import ArgumentError, TraceError

engines = pytest.mark.parametrize("tw", [dynamic, static], ids=["dynamic", "static"])
#: What PyTorch draws first in four dimensions.
FIRST = [
    [0.0, 0.0, 0.0, 0.0], [0.5, 0.5, 0.5, 0.5], [0.75, 0.25, 0.25, 0.25], [0.25, 0.75, 0.75, 0.75],
    [0.375, 0.375, 0.625, 0.875], [0.875, 0.875, 0.125, 0.375], [0.625, 0.125, 0.875, 0.625],
    [0.125, 0.625, 0.375, 0.125],
]  # fmt: skip
#: The sums of a hundred points in ten dimensions, from PyTorch.
SUMS = [49.40625, 49.78125, 49.34375, 49.65625, 49.28125, 49.21875, 49.34375, 49.65625, 49.28125, 49.53125]


@engines
def test_points_are_those_of_pytorch(tw):
    engine = tw.quasirandom.SobolEngine(4)
    assert engine.draw_base2(3).tolist() == FIRST
    assert tw.quasirandom.SobolEngine(10).draw(100).sum(0).tolist() == SUMS
    assert engine.num_generated == 8
    assert str(engine) == "SobolEngine(dimension=4)"


@engines
def test_a_sequence_goes_on_where_it_is(tw):
    engine = tw.quasirandom.SobolEngine(4)
    assert engine.draw(3).tolist() == FIRST[:3]
    other = copy.deepcopy(engine)
    assert engine.fast_forward(2).draw(0).shape == (0, 4)
    assert engine.draw(2).tolist() == FIRST[5:7]
    assert other.draw().tolist() == FIRST[3:4]
    assert engine.reset().draw(2, dtype=tw.float64).dtype == tw.float64
    out = tw.zeros(1)
    assert engine.draw(2, out) is out
    assert out.tolist() == FIRST[2:4]
    with pytest.raises(ArgumentError, match=r"power of 2\. 4 points have been previously generated"):
        engine.draw_base2(1)
    assert engine.draw_base2(2).tolist() == FIRST[4:]


@engines
def test_scrambled_points_are_even_too(tw):
    make = tw.quasirandom.SobolEngine
    points = make(3, scramble=True, seed=5).draw(64)
    assert points.tolist() == make(3, True, 5).draw(64).tolist() != make(3, True, 6).draw(64).tolist()
    counts = tw.stack([(points * 64).floor().sort(0)[0][:, k] for k in range(3)])
    assert counts.tolist() == [list(range(64))] * 3  # one point in each of 64 slices
    drawn = []
    for _ in range(2):
        tw.manual_seed(3)
        drawn.append(make(2, scramble=True).draw(4).tolist())
    assert drawn[0] == drawn[1]
    assert math.isfinite(sum(map(sum, drawn[0])))


@engines
def test_what_is_refused(tw):
    for dimension in (0, 21202):
        with pytest.raises(ArgumentError, match="Supported range of dimensionality"):
            tw.quasirandom.SobolEngine(dimension)
    engine = tw.quasirandom.SobolEngine(2)
    with pytest.raises(TraceError, match="the same points"):
        static.function(lambda x: x + engine.draw(1))(tw.zeros(2))
