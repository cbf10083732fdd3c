"""Every workload is well formed; what it computes is checked by the run itself."""

import numpy as np
import pytest

import dynamic
from benchmarks.lab import agreement
from benchmarks.peers import with_numba
from benchmarks.workload import discover
from benchmarks.workloads import charlm

WORKLOADS = discover()


def test_rows_of_the_issue_are_there():
    names = {workload.name for workload in WORKLOADS}
    assert names >= {"digits", "charlm", "chain", "mixed-chain", "a-float32", "a-float64", "b-cross-entropy",
                     "c-layer-norm", "d-mlp-adam", "deep", "e-tiny-mlp", "f-mlp",
                     "g-mlp-adam", "h-lstm-cell", "i-transformer"}  # fmt: skip
    assert len(names) == len(WORKLOADS)


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: w.name)
def test_inputs_alternate_between_different_arrays_of_one_kind(workload):
    sets = workload.inputs()
    assert len(sets) >= 2
    kinds = {tuple((array.shape, array.dtype) for array in arrays) for arrays in sets}
    assert len(kinds) == 1
    assert all(array.flags.c_contiguous and array.flags.owndata for arrays in sets for array in arrays)
    assert not np.array_equal(sets[0][0], sets[1][0])


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: w.name)
def test_inputs_are_the_same_in_every_process(workload):
    for first, second in zip(workload.inputs(), workload.inputs(), strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: w.name)
def test_titles_are_one_line(workload):
    assert workload.title
    assert "\n" not in workload.title


@pytest.mark.parametrize("name", with_numba.WRITTEN)
def test_what_is_written_by_hand_agrees(name):
    (workload,) = (w for w in WORKLOADS if w.name == name)
    rows = tuple(x[:8] for x in workload.inputs()[0])  # the loops run in Python here
    ours = agreement.leaves(workload.make(dynamic).call(*rows))
    theirs = agreement.leaves(with_numba.WRITTEN[name](*rows))
    assert [(x.shape, x.dtype) for x in ours] == [(x.shape, x.dtype) for x in theirs]
    assert agreement.distance(ours, theirs) < 1e-5


def test_selection():
    assert [w.name for w in discover(["digits", "a-float"])] == ["digits", "a-float32", "a-float64"]
    with pytest.raises(LookupError, match="no workload's name contains 'nonsense'"):
        discover(["digits", "nonsense"])


def test_text_is_text():
    codes = charlm.corpus()
    assert codes.dtype == np.int64
    assert len(codes) > 100_000
    assert 0 <= codes.min() <= codes.max() < charlm.VOCABULARY
    assert np.bincount(codes).argmax() == 0  # the space
