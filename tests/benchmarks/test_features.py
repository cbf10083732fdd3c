"""The tables of what parts cost measure what they say."""

import numpy as np

import dynamic as tw
from benchmarks import backward_passes, features
from common.core.op import REGISTRY
from dynamic.eager import tensor


def test_a_part_is_left_out():
    short = tensor._Short(REGISTRY["mul"])
    x = tw.tensor([1.0, 2.0], requires_grad=True)
    whole = tensor._binary(short)[0](x, x)
    part = features.without(tensor._binary, "_getframe", "f_code", "_users")(short)[0](x, x)
    assert part.tolist() == whole.tolist() == [1, 4]
    assert hasattr(whole.grad_fn, "lasti")
    assert not hasattr(part.grad_fn, "lasti")
    unasked = features.without(tensor._binary, "_grad_enabled")(short)[0]
    with tw.no_grad():
        assert unasked(x, x).requires_grad


def test_every_feature_has_a_row():
    rows = features.rows(0.01)
    assert len({row.feature for row in rows}) == len(rows) == 11
    assert all(row.on > 0 and row.off > 0 for row in rows)


def test_arrays_at_the_peak_are_counted():
    x = np.ones(1 << 16)
    assert 1.9 < backward_passes.arrays_at_peak(lambda: (x + 1, x + 2), x.nbytes) < 2.1
