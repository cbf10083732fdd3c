"""Draws of more integers than float64 tells apart: their range, and how often each part of it comes."""

import numpy as np
import pytest

import dynamic
import static

engines = pytest.mark.parametrize("tw", [dynamic, static], ids=["dynamic", "static"])
BOUNDS = [(-(2**63), 2**63 - 1), (0, 2**53 + 2**52), (-5, 2**62), (2**62, 2**63 - 1)]


@engines
@pytest.mark.parametrize(("low", "high"), BOUNDS)
def test_wide_integers_fill_their_range_evenly(tw, low, high):
    tw.manual_seed(3)
    for x in (tw.randint(low, high, (8000,)), tw.empty(8000, dtype=tw.int64).random_(low, high)):
        parts = [(int(n) - low) * 8 // (high - low) for n in x.tolist()]
        counts = np.bincount(parts, minlength=8)
        assert len(counts) == 8  # nothing outside the bounds
        assert abs(counts - 1000).max() < 6 * (1000 * 7 / 8) ** 0.5
        assert np.bincount(x.numpy() & 7, minlength=8).min() > 800  # their last bits change, too


@engines
def test_all_bits_of_int64_are_drawn(tw):
    x = tw.empty(4000, dtype=tw.int64).random_(-(2**63), None)
    bits = (x.numpy()[:, None] >> np.arange(64)) & 1
    assert abs(bits.mean(0) - 0.5).max() < 0.06
    with pytest.raises(ValueError, match="within 64 bits"):
        tw.randint(0, 2**64, (1,))
    with pytest.raises(ValueError, match="out of bounds"):
        tw.randint(0, 2**60, (1,), dtype=tw.int32)


def test_both_engines_draw_the_same_wide_integers():
    drawn = []
    for tw in (dynamic, static):
        tw.manual_seed(5)
        drawn.append(tw.function(lambda tw=tw: tw.randint(-(2**63), 2**63 - 1, (50,)))().tolist())
        drawn.append(tw.randint(-(2**63), 2**63 - 1, (50,)).tolist())
    assert drawn[:2] == drawn[2:]
