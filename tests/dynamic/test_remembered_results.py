"""Functions of sizes and numbers that remember small results: each call gets a copy with the same bits."""

import numpy as np
import pytest

import dynamic
from dynamic.eager import remembered
from tests.bits import assert_all_same_bits

MADE = {
    "full": lambda tw: tw.full((3, 2), -0.0),
    "full of 0": lambda tw: tw.full((3, 2), 0.0),
    "full of 1": lambda tw: tw.full((3, 2), 1),
    "full of True": lambda tw: tw.full((3, 2), True),
    "zeros of a tuple": lambda tw: tw.zeros((3, 2)),
    "ones of a list": lambda tw: tw.ones([3, 2], dtype=tw.int64),
    "empty of a Size": lambda tw: tw.empty(tw.eye(3, 2).shape),
    "eye": lambda tw: tw.eye(3, 4, dtype=tw.float64),
    "arange": lambda tw: tw.arange(1, 9, 3),
    "arange of floats": lambda tw: tw.arange(1.0, 9.0, 3.0),
    "linspace": lambda tw: tw.linspace(0, 1, 7, requires_grad=True),
    "tril_indices": lambda tw: tw.tril_indices(3, 4, 1),
    "hann_window": lambda tw: tw.hann_window(6),
}


def test_small_results_of_sizes_and_numbers_are_copied(monkeypatch):
    """Each call has memory of its own; the default dtype is part of what is remembered."""
    meet = remembered.SmallResults.meet
    met = []
    monkeypatch.setattr(remembered.SmallResults, "meet", lambda *given: met.append(given) or meet(*given))
    for name, f in MADE.items():
        first = f(dynamic)
        for step in range(3 * remembered.OFTEN):
            met.clear()
            y = f(dynamic)
            assert_all_same_bits([y], [first], name)
            assert y.is_leaf
            assert y.requires_grad == first.requires_grad
            assert bool(met) == (step + 2 <= remembered.OFTEN), name
            y.detach().zero_()
    dynamic.set_default_dtype(dynamic.float64)
    try:
        assert MADE["linspace"](dynamic).dtype == MADE["full"](dynamic).dtype == dynamic.float64
    finally:
        dynamic.set_default_dtype(dynamic.float32)
    assert MADE["linspace"](dynamic).dtype == dynamic.float32


def test_large_results_draws_and_numbers_below_the_normal_ones_are_not_remembered(monkeypatch):
    learnt = remembered.SmallResults.learnt
    lines = []
    monkeypatch.setattr(remembered.SmallResults, "learnt", lambda *given: lines.append(learnt(*given)) or lines[-1])
    makes = {
        "large": lambda: dynamic.full((5000,), 1.0),
        "small numbers": lambda: dynamic.full((2,), 1e-310, dtype=dynamic.float64),
        "draws": lambda: dynamic.randn(3),
        "data": lambda: dynamic.tensor(1.5),
    }
    for name, make in makes.items():
        lines.clear()
        values = [make().numpy().tobytes() for _ in range(3 * remembered.OFTEN)]
        assert not any(lines), name
        assert len(set(values)) == (len(values) if name == "draws" else 1)
    with dynamic.inference_mode():
        assert all(dynamic.arange(1, 9, 3).is_inference() for _ in range(2 * remembered.OFTEN))


def test_tuples_in_a_tuple_and_negative_sizes_stay_refused():
    for _ in range(2 * remembered.OFTEN):
        assert dynamic.zeros((3, 4)).shape == (3, 4)
        assert dynamic.zeros(()).shape == ()
        for wrong in (((3, 4),), (3, -1), (3, 1.5)):
            with pytest.raises((TypeError, ValueError, RuntimeError)):
                dynamic.zeros(wrong)


def test_results_without_elements_beside_others_are_made_anew(monkeypatch):
    """`lstsq` gives singular values and residuals that are empty: the call is remembered all the same."""
    learn, made = remembered._learnt, []
    monkeypatch.setattr(remembered, "_learnt", lambda *given: made.append(learn(*given)) or made[-1])
    rng = np.random.default_rng(0)
    for recorded in (False, True):
        for shape in ((6, 3), (3, 6), (2, 4, 4)):
            arrays = [rng.normal(size=s).astype(np.float32) for s in (shape, (*shape[:-1], 2))]
            first, slopes, last = None, None, None
            for _ in range(2 * remembered.OFTEN):
                a, b = (dynamic.tensor(x, requires_grad=recorded) for x in arrays)
                y = dynamic.linalg.lstsq(a, b)
                grads = dynamic.autograd.grad(y.solution.sum(), [a, b]) if recorded else []
                first, slopes = first or y, slopes or grads
                assert type(y) is type(first)
                assert_all_same_bits([*y, *grads], [*first, *slopes], str(shape))
                assert [x.shape for x in y] == [x.shape for x in first]
                assert y.singular_values is not last
                assert y.singular_values.is_leaf
                last = y.singular_values.requires_grad_()
    assert len(made) >= 3
    assert all(made)
    np.testing.assert_allclose(y.solution.detach().numpy(), np.linalg.solve(*arrays), rtol=1e-2, atol=1e-3)
