"""The tables of what parts cost measure what they say."""

import weakref

import numpy as np

import dynamic as tw
from benchmarks import backward_passes, features
from common.core import mode
from common.tensor import write_log
from dynamic.eager import views


def test_a_part_is_left_out():
    x = tw.tensor(np.arange(8, dtype=np.float32), requires_grad=True)
    whole, part, unasked = (
        features.Multiplier(*features.PARTS.get(name, ())).operator for name in ("", "line of the user", "grad mode")
    )
    assert part(x, x).tolist() == whole(x, x).tolist() == [0, 1, 4, 9, 16, 25, 36, 49]
    assert hasattr(whole(x, x).grad_fn, "lasti")
    assert not hasattr(part(x, x).grad_fn, "lasti")
    with tw.no_grad():
        assert unasked(x, x).requires_grad
        assert not whole(x, x).requires_grad


def test_logs_and_families_are_left_out(monkeypatch):
    calls, references = {}, []
    monkeypatch.setattr(mode, "inference_seen", False)  # another test's: then writes take the general way
    monkeypatch.setattr(features, "fastest", lambda given, seconds: calls.update(given) or dict.fromkeys(given, 1.0))
    monkeypatch.setattr(views, "ref", lambda x: references.append(x) or weakref.ref(x))
    features.write_row(1.0)
    for _ in range(2):  # until the kernel that writes is known
        calls["on"]()
    before = write_log.last_write
    calls["off"]()
    assert write_log.last_write == before
    calls["on"]()
    assert write_log.last_write > before
    features.view_row(1.0)
    calls["off"]()
    assert references == []
    calls["on"]()
    assert len(references) == 100


def test_every_feature_has_a_row():
    rows = features.rows(0.01)
    assert len({row.feature for row in rows}) == len(rows) == 11
    assert all(row.on > 0 and row.off > 0 for row in rows)


def test_arrays_at_the_peak_are_counted():
    x = np.ones(1 << 16)
    assert 1.9 < backward_passes.arrays_at_peak(lambda: (x + 1, x + 2), x.nbytes) < 2.1
